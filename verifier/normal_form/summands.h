// Summands of what is not negative: each is at most the sum. So a softmax is at most 1.
#pragma once

#include <optional>
#include <vector>

#include "solver/proof_state.h"

namespace gopt::verifier {

// Whether the factors together are one of the summands, with the value of its binders that they have, of a sum of
// exponentials, or of other factors that are not negative.
bool is_summand_of(const std::vector<Factor>& factors, const NormalForm& sum, const Cond& context, ProofState& state);

// A value that the branch has in the context: where it reads what the factors read.
std::optional<NormalForm> value_near(const Branch& branch, const std::vector<Factor>& factors, const Cond& context,
                                     ProofState& state);

// Whether the form is c (ln s - x), for a c that is positive, and perhaps a positive number more, and an e^x that is
// one of the summands of s.
bool is_logarithm_of_larger(const NormalForm& form, const Cond& context, ProofState& state);

}  // namespace gopt::verifier
