// Bounds of functions by the sign of their argument, as facts about real numbers: 0 < tanh u < u where u > 0.
#pragma once

#include <vector>

#include "gopt/expr.h"
#include "ranges.h"
#include "solver/solver.h"

namespace gopt::verifier {

// Of value = function(argument), where the argument has this sign: -1, 0 or 1. `range` is where the argument lies. Only
// functions with a value for all real numbers.
std::vector<RealFact> function_facts(Function function, const RealExprPtr& value, const RealExprPtr& argument, int sign,
                                     const ValueRange& range);
// Whether there are any of the function.
bool has_function_facts(Function function);

// Sums and multiples of reals.
RealExprPtr real_number(const Rational& value);
RealExprPtr real_product(RealExprPtr a, RealExprPtr b);
RealExprPtr real_sum(RealExprPtr a, RealExprPtr b);
RealExprPtr real_difference(RealExprPtr a, RealExprPtr b);

}  // namespace gopt::verifier
