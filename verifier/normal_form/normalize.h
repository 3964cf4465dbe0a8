// From scalar expressions to normal forms. See simplify.h for what makes two forms of one value alike.
#pragma once

#include "solver/proof_state.h"

namespace gopt::verifier {

// The normal form of `expr` wherever `context` holds. Throws NotExpressible.
NormalForm normalize(const Expr& expr, const Cond& context, ProofState& state);

}  // namespace gopt::verifier
