// Sums that are 0 by what functions are between: a sine is below its argument where that is positive, a maximum is at
// least each of the values that it is over, a sum of squares is not negative. Cases inside functions are settled one by
// one, arguments of functions by their signs; piecewise.h does what needs no such facts.
#pragma once

#include "solver/proof_state.h"

namespace gopt::verifier {

bool is_zero_pointwise(const NormalForm& terms, const Cond& context, ProofState& state);

}  // namespace gopt::verifier
