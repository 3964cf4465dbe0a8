// Functions written by simpler ones: hyperbolic functions by exponentials, their inverses by logarithms, a tangent by
// sine and cosine, those of a sum or multiple by those of its parts. rearrange.h and demands.h compare what comes out.
#pragma once

#include <optional>
#include <vector>

#include "solver/proof_state.h"

namespace gopt::verifier {

// Sizes that are no single symbol are multiplied out, too. What would be too large stays as it is.
NormalForm with_functions_expanded(const NormalForm& form, const Cond& context, ProofState& state);
// All of them by the same sines and cosines.
std::vector<NormalForm> with_functions_expanded(const std::vector<NormalForm>& forms, const Cond& context,
                                                ProofState& state);

// A sum of logarithms, and of what is none, is 0 where this form is: what e to that power is, less 1. Nothing where
// there is no logarithm.
std::optional<NormalForm> with_logarithms_joined(const NormalForm& form, const Cond& context, ProofState& state);

}  // namespace gopt::verifier
