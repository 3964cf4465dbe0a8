// Rewrite rules: two graphs over the same variables that are equal wherever the condition holds. A candidate is
// unproved; a rule in a database carries its proof record, and only those load. The text form is in docs/grammar.md;
// see verifier.h for who proves and optimizer.h for who applies.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gopt/graph.h"

namespace gopt {

enum class VariableKind {
  Activation,  // may depend on the model's input; weights match it too
  Weight,      // matches only what depends on initializers alone
};

// A pattern variable. Its type's extents are symbols of the rule (or polynomials of them). f32 stands for each of the
// rule's real_types, the same for all variables.
struct RuleVariable {
  std::string name;
  VariableKind kind = VariableKind::Activation;
  TensorType type;
  // The rule holds under any leading axes before those of `type`, the same for every variable so marked and for the
  // outputs; in such rules axis attributes of nodes above these variables are negative. Written "f32[...,a,b]".
  bool has_prefix = false;
};

// How floating-point results may differ although the reals are equal (docs/floats.md).
struct RuleMarks {
  bool finite_only = false;     // assumes no NaN or infinity (x - x = 0)
  bool loses_range = false;     // the right side overflows or vanishes where the left does not
  bool cancels = false;         // the right side loses all digits where the left does not
  bool narrows = false;         // the right side computes in a type of fewer digits than the left (a Cast moved behind)
  bool drops_rounding = false;  // the left side computes rounding errors, or rounds, which the right does not (TwoSum)
  bool reassociates = false;    // changes the order of sums or products
  bool changes_rounding = false;  // replaces functions or constants by others
  friend bool operator==(const RuleMarks&, const RuleMarks&) = default;
};
RuleMarks operator|(const RuleMarks& a, const RuleMarks& b);

struct MarkInfo {
  std::string_view name;  // as rules files have it: "finite-only"
  bool RuleMarks::*flag;
  bool is_safe;  // rules that have it are applied without being asked for
  std::string_view meaning;
};
std::span<const MarkInfo> all_marks();
const MarkInfo* find_mark(std::string_view name);  // null where there is none
std::string to_string(const RuleMarks& marks);     // " finite-only reassociates"; empty where there is none
// Whether a rule so marked may be applied: what is not safe among its marks is `allowed`.
bool may_apply(const RuleMarks& marks, const RuleMarks& allowed);

// The floating-point types that f32 may stand for in a rule.
std::span<const ElementType> all_real_types();

struct ProofRecord {
  std::string definitions;  // definitions_hash() of the rule when it was proved
  int obligations = 0;      // number of solver queries answered
  std::string solver;       // "z3 4.8.12"
  std::string digest;       // hash of the obligations' text
  std::string rule;         // content hash of the rule that was proved: an edited rule does not keep its proof
  friend bool operator==(const ProofRecord&, const ProofRecord&) = default;
};

// Places [low, high) along one axis of an output; a box has one such range for each axis.
struct AxisRange {
  Index low, high;
  friend bool operator==(const AxisRange&, const AxisRange&) = default;
};
using Box = std::vector<AxisRange>;
std::string to_string(const Box& box);  // "[0:n, 1:h-1]"

struct Scheme;

struct RewriteRule {
  std::string name;
  // A rule at any rank (scheme.h). What follows is then its instance under ranks of one or two axes a list.
  std::shared_ptr<const Scheme> scheme;
  std::vector<RuleVariable> variables;
  // Inputs are the variables, by name and in order; as many outputs on both sides. Attributes may hold symbols.
  Graph left, right;
  // Over symbols of the variables' types and the attributes; beyond what the left side's own requirements say.
  Cond condition;
  // A partial rule's sides are equal on these boxes of each output, and need not be elsewhere; an output without a box
  // is equal everywhere. Empty: a full rule, the only kind that may be applied as it stands.
  std::vector<std::vector<Box>> regions;
  // What f32 stands for, as far as it was proved; empty: each of all_real_types(). A rule that converts may hold for
  // some of them alone: Cast(x) {to=1} is x where x is f32, not where it is f64.
  std::vector<ElementType> real_types;
  RuleMarks marks;
  std::string origin;  // "hand", or "generator seed=1 max-ops=2 family=dense"
  std::optional<ProofRecord> proof;

  bool is_partial() const { return !regions.empty(); }
  std::string content_hash() const;  // of everything but name, origin and proof
};

// A hash, 16 hexadecimal digits, of the definitions that a proof of the rule rests on: those of the operators of its
// two sides. A rule with a record of another hash is stale. `hash_of` gives an operator's.
std::string definitions_hash(const RewriteRule& rule,
                             const std::function<std::string(OpKind)>& hash_of = definition_hash);

// Whether f32 may stand for that floating-point type in the rule.
bool holds_for(const RewriteRule& rule, ElementType real);

// Names of the float attribute variables ($eps) of the left side, in order of their slots.
std::vector<std::string> float_variables(const RewriteRule& rule);
// Slot of the first float variable; tensor variables are the inputs below it.
inline constexpr int kFirstFloatSlot = 1000;

// The rule with `prefix` before the shape of every variable that has one, and none open any more. Errors: an operator
// above such a variable that is not pointwise in leading axes. Of a scheme: the instance that it carries, alone.
Result<RewriteRule> with_prefix(const RewriteRule& rule, const Shape& prefix);

// Whether variables are distinct, both sides are over them and have outputs of one type, and the left side binds every
// symbol and float variable that the right side and the condition use.
Status check_rule(const RewriteRule& rule);

// A stanza that cannot be read: grammar, unbound variables, arities, ill-typed sides.
struct MalformedRule {
  std::string name;     // as far as it was read
  std::string message;  // "FILE:12: rule `x`: ..."
  size_t next = 0;      // number among the rules that were read of the one that comes after it
};
struct ParsedRules {
  std::vector<RewriteRule> rules;
  std::vector<MalformedRule> malformed;
};
// The rules where none is malformed; else an error with a line for each that is.
Result<std::vector<RewriteRule>> rules_or_error(ParsedRules parsed);

// Stanzas of a rules file, each by itself: one that is malformed does not keep others from being read.
ParsedRules parse_each_rule(std::string_view text, const std::string& file_name);
// All of them. Errors: what is malformed.
Result<std::vector<RewriteRule>> parse_rules(std::string_view text, const std::string& file_name);
std::string print_rule(const RewriteRule& rule);
std::string print_rules(const std::vector<RewriteRule>& rules);
// The text of a rules file with each stanza's condition, marks and proof as in the rule of its name; all else, comments
// too, stays as it is written.
std::string update_rules_text(std::string_view text, const std::vector<RewriteRule>& rules);

// Rules of a database file that may be applied: proved, under today's definitions. Others are left out, each with a
// warning. Partial rules are apart: what applies one has to correct the result outside its region.
struct RuleDatabase {
  std::vector<RewriteRule> rules, partial_rules;
  std::vector<std::string> warnings;
};
Result<RuleDatabase> load_rules(const std::string& path);

}  // namespace gopt
