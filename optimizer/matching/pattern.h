// A rule compiled for matching: its two sides as flat arrays of nodes, rule symbols renamed so that they cannot be
// taken for the model's, and the order in which nodes are found from the first root. See match.h, which walks it.
#pragma once

#include <string>
#include <vector>

#include "gopt/scheme.h"

namespace gopt::optimizer {

// An input of a pattern node or an output of a side: a variable, an output of a node, or nothing (a left-out input).
struct PatternValue {
  int variable = -1;
  int node = -1;
  int output = 0;
};

struct PatternNode {
  OpKind op;
  std::vector<PatternValue> inputs;
  Attributes attributes;
  std::vector<TensorType> outputs;
  bool is_commutative = false;
  Tensor tensor;  // Constant
};

struct PatternSide {
  std::vector<PatternNode> nodes;  // each after what it uses
  std::vector<PatternValue> outputs;
};

struct PatternVariable {
  VariableKind kind;
  ElementType element;
  Shape shape;
  bool has_prefix = false;  // of the rule's open leading axes, of which the pattern has a number
};

// One step of the walk. Descend: match `node` and all below it, at the candidate root (first step only). Climb: from
// the bound value `from` to some user that matches nodes.front(), from that to a user that matches the next, up to a
// root.
struct WalkStep {
  PatternValue from;
  std::vector<int> nodes;
};

struct Pattern {
  std::string rule_name, rule_hash;
  std::vector<PatternVariable> variables;
  PatternSide left, right;
  Cond condition;
  std::vector<ElementType> real_types;  // what f32 stands for; empty: every floating-point type
  // Both sides only move elements: what they are is never looked at, so that f32 stands for every type.
  bool moves_elements = false;
  // The rule puts sums or products into another order: where two of its variables are one value, or constants cancel,
  // that may take away rounding that is meant (x + c - c, which rounds x).
  bool keeps_rounding = false;
  bool keeps_compensation = true;  // does not touch sums whose rounding is measured (compensation.h)
  bool keeps_constants = true;     // of no constants are made what their type does not hold, or whose digits cancel
  // Symbols of the variables' extents: the proof takes them as non-negative.
  std::set<AtomId> extent_symbols;
  std::vector<WalkStep> climbs;  // for roots that the first root's descent does not reach
  int depth = 0;                 // longest path of the left side, in nodes

  // Whether f32 may stand for that type.
  bool holds_for(ElementType element) const;
  int first_root() const { return left.outputs.front().node; }
};

// Says how the nodes of a pattern's left side are found. Errors: a root that is a variable, roots that share nothing.
Status plan_walk(Pattern& pattern);

// Whether it holds under any leading axes.
bool is_open(const RewriteRule& rule);

// Writes into a pattern what it takes from its rule as a whole, whose content hash is `hash`.
void name_after(const RewriteRule& rule, const std::string& hash, Pattern& pattern);

// The pattern of a rule at any rank, for these ranks. Permutations and subsets are symbols of it, which the model's
// attributes bind. `hash` is the rule's content hash.
Result<Pattern> compile_at_ranks(const RewriteRule& rule, const std::string& hash, const RankAssignment& ranks);
// The pattern of any other rule below that many leading axes, where it holds under any. Errors: as compile_rule.
Result<Pattern> compile_below_axes(const RewriteRule& rule, const std::string& hash, int prefix);

// The patterns of a rule: one, or, where it holds under any leading axes, one for each number of them up to
// `max_prefix`; where it speaks of lists of axes, one for each of its ranks of at most as many axes. Errors: a side
// that cannot be matched (a root that is a variable, roots that share nothing), a symbol of the right side that the
// left does not bind.
Result<std::vector<Pattern>> compile_rule(const RewriteRule& rule, int max_prefix = 5);

}  // namespace gopt::optimizer
