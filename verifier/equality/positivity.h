// What is seen to be positive, or never 0: what a quotient, a root or a logarithm may be applied to without a demand,
// and what may be divided out. "No" means only that it was not seen. laws.h says which squares are not negative.
#pragma once

#include "solver/proof_state.h"

namespace gopt::verifier {

// Whether the form is positive wherever the context holds: by its range, or as one term that is, a number, an
// exponential or a size, and a sum of all others that is not negative.
bool is_positive(const NormalForm& form, const Cond& context, ProofState& state);

// Whether every term is a product of what is never negative and of squares.
bool is_nonnegative(const NormalForm& form, const Cond& context, ProofState& state);
// Whether the difference is never negative, also once it is multiplied by what it divides by.
bool is_at_least(const NormalForm& a, const NormalForm& b, const Cond& context, ProofState& state);

// Whether a size, or a product of sizes, is stated, or follows, to be positive.
bool is_positive_size(const Factor& factor, const Cond& context, ProofState& state);
bool is_positive_size(const NormalForm& form, const Cond& context, ProofState& state);

bool is_never_zero(const Factor& factor, const Cond& context, ProofState& state);

}  // namespace gopt::verifier
