// Quotients, comparisons and named functions of normal forms, by the laws of laws.h. What is applied to a value outside
// its domain is demanded of the side (demands.h). normalize.h builds forms with them, sign_cases.h builds them again.
#pragma once

#include "solver/proof_state.h"

namespace gopt::verifier {

// 1 / form, and form as a divisor.
NormalForm reciprocal(NormalForm form, const Cond& context, ProofState& state);
// difference < 0, or difference == 0, as 1 or 0.
NormalForm comparison(FactorKind kind, NormalForm difference, const Cond& context, ProofState& state);
// Precondition: the arguments are simplified.
NormalForm apply(Function function, std::vector<NormalForm> args, const Cond& context, ProofState& state);

}  // namespace gopt::verifier
