// Logarithms, roots and powers of normal forms, by the laws of laws.h. What they are not defined for is demanded.
#pragma once

#include "solver/proof_state.h"

namespace gopt::verifier {

NormalForm logarithm(NormalForm argument, const Cond& context, ProofState& state);
NormalForm square_root_of(NormalForm radicand, const Cond& context, ProofState& state);
NormalForm power(const NormalForm& base, const NormalForm& exponent, const Cond& context, ProofState& state);

}  // namespace gopt::verifier
