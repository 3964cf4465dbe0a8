// Rules at any rank: a scheme is a rule whose types and attributes speak of lists of axes, each of any length. It
// stands for all of its instances, which are plain rules. The text form is in docs/grammar.md; docs/verifier.md says
// why finitely many instances prove all of them. See rule.h for the rule that carries a scheme.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "gopt/rule.h"

namespace gopt {

// What is declared over a list: an integer for each of its axes, an order of its axes, or some of its axes. Subsets of
// one list are disjoint.
enum class AxisSymbolKind { Integers, Permutation, Subset };
struct AxisSymbol {
  std::string name;
  AxisSymbolKind kind;
  std::string list;
};

// An entry of a list of extents or integers: one value, or one for each axis of `domain` (a list or a subset), in which
// case `value` is over names that stand for another number at each axis: A (extent), s (integer), p (position),
// s.p (s at position p), p.inv (the inverse), one.A, zero.A.
struct SchemeItem {
  Index value;
  std::string domain;  // empty: one value
  friend bool operator==(const SchemeItem&, const SchemeItem&) = default;
};
using SchemeItems = std::vector<SchemeItem>;
using SchemeAttribute = std::variant<AttributeValue, SchemeItems>;

struct SchemeNode {
  OpKind op;
  std::vector<std::string> outputs;
  std::vector<std::string> inputs;  // by name; empty where left out
  std::map<std::string, SchemeAttribute> attributes;
  Tensor tensor;  // Constant
  // Derived: where lists begin in the first input, over rank.A of the lists before them.
  std::map<std::string, Index> starts = {};
  Index rank = {};  // derived: of the first output, in the same way
};

struct SchemeSide {
  std::vector<SchemeNode> nodes;
  std::vector<std::string> outputs;
};

struct SchemeVariable {
  std::string name;
  VariableKind kind;
  ElementType element;
  SchemeItems shape;
};

// Holds at each axis of `domain`, where it speaks of names that stand for another number at each.
struct SchemeCondition {
  Cond cond;
  std::string domain;
};

struct Scheme {
  std::vector<std::string> lists;
  std::vector<AxisSymbol> symbols;
  std::vector<SchemeVariable> variables;
  SchemeSide left, right;
  std::vector<SchemeCondition> conditions;
  // Derived: why the scheme's instances of every rank do not follow from few; empty where they do.
  std::string objection;
  // Derived: axes at which an instance has to be looked at, for lists with an integer at each axis; others need one.
  int bound = 1;

  bool has_integers(const std::string& list) const;
  std::vector<std::string> subsets_of(const std::string& list) const;
};

// Which instance: how many axes each list has, and what its permutations and subsets are: places 0, 1, ... of the list,
// as numbers or symbols.
struct RankAssignment {
  std::map<std::string, int> lengths;
  std::map<std::string, std::vector<Index>> places;
  friend bool operator==(const RankAssignment&, const RankAssignment&) = default;
};
std::string to_string(const RankAssignment& ranks);  // "A=2, p=[1,0]"

// Lists of the given lengths, identical permutations, subsets of the given sizes at the end of their list.
RankAssignment plain_ranks(const Scheme& scheme, const std::map<std::string, int>& lengths,
                           const std::map<std::string, int>& subset_sizes = {});
// Integers of an axis are the symbols NAME.0, NAME.1, ..., and so are extents.
Index axis_symbol(const std::string& name, size_t axis);

// The plain rule of these ranks, whose permutations and subsets are numbers. Errors: as the operators' definitions.
Result<RewriteRule> instance_of(const RewriteRule& rule, const RankAssignment& ranks);
// The condition of these ranks.
Cond condition_of(const Scheme& scheme, const RankAssignment& ranks);
TensorType type_of(const Scheme& scheme, const SchemeVariable& variable, const RankAssignment& ranks);
// The value of one attribute.
AttributeValue attribute_of(const Scheme& scheme, const SchemeNode& node, const std::string& attribute,
                            const RankAssignment& ranks);
// Whether an attribute's value depends on permutations or subsets.
bool depends_on_places(const Scheme& scheme, const SchemeAttribute& attribute);
// One side as a graph, and the nodes of its lines in their order.
struct SchemeGraph {
  Graph graph;
  std::vector<NodePtr> nodes;
};
Result<SchemeGraph> side_of(const Scheme& scheme, const SchemeSide& side, const RankAssignment& ranks);

// Rank assignments whose instances prove those of all ranks, where there is no objection (docs/verifier.md).
std::vector<RankAssignment> ranks_to_prove(const Scheme& scheme);
// Rank assignments under which no value has more than `max_rank` axes; permutations and subsets, of one axis at least,
// are symbols.
std::vector<RankAssignment> ranks_to_match(const Scheme& scheme, int max_rank);
// Operators of a side with the rank of their first output.
using RankedOperator = std::pair<OpKind, int>;
std::vector<RankedOperator> ranked_operators(const Scheme& scheme, const SchemeSide& side, const RankAssignment& ranks);

// Derives starts, objection and bound. Errors: an operator that no list may go through in this way, and names that
// nothing says.
Status analyze(Scheme& scheme);

std::string print_scheme(const Scheme& scheme);  // the lines of a stanza up to its sides' end

}  // namespace gopt
