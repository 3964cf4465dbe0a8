// Equality of normal forms. A guess of how the binders of two terms correspond is read off their factors; the solver
// then checks it: one quantifier-free question a class of terms, SUM coefficient * [guard] = 0 for all binders.
#pragma once

#include "solver/proof_state.h"

namespace gopt::verifier {

// Whether the forms have one value wherever `context` holds. False may mean that no proof was found.
bool are_equal(const NormalForm& left, const NormalForm& right, const Cond& context, ProofState& state);

}  // namespace gopt::verifier
