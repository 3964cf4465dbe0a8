// What the two sides of a rule compute: each output as a function of its subscripts over reads of the rule's variables
// (read(i) is variable i, read(kFirstFloatSlot + k) float variable k), with what must hold for the side to be defined.
#pragma once

#include <set>
#include <vector>

#include "gopt/rule.h"

namespace gopt::verifier {

struct SideMeaning {
  std::vector<TensorExpr> outputs;
  std::vector<Requirement> requirements;
};

// Errors: an operator without a definition, a constant that is too large to be looked at.
Result<SideMeaning> meaning_of(const Graph& side);

// Extents are not negative.
Cond variable_domain(const RewriteRule& rule);
// Symbols of the variables' extents and of the left side's attributes, by name.
std::vector<AtomId> rule_symbols(const RewriteRule& rule);

// The side for numbers in place of symbols and float variables, in `real` in place of every floating-point type.
// Errors: the side is not defined for these numbers.
Result<Graph> instantiate(const Graph& side, const Substitution& sizes, const std::vector<double>& floats,
                          ElementType real);

// The rule with that floating-point type in place of f32, in variables and constants. Errors: a side has no meaning, or
// its outputs have other types, then.
Result<RewriteRule> with_real_type(const RewriteRule& rule, ElementType real);

// The rule with these in place of some of its symbols.
Result<RewriteRule> with_sizes(const RewriteRule& rule, const Substitution& sizes);

}  // namespace gopt::verifier
