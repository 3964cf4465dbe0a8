// Sums, products and exponentials of normal forms. normalize.h builds forms with them, rearrange.h changes them.
#pragma once

#include <optional>

#include "solver/proof_state.h"

namespace gopt::verifier {

NormalForm add(NormalForm a, const NormalForm& b, ProofState& state);
// Sums are multiplied out.
NormalForm multiply(const NormalForm& a, const NormalForm& b, const Cond& context, ProofState& state);
// exp of a sum is a product of exponentials, one a term.
NormalForm exponential(const NormalForm& form, const Cond& context, ProofState& state);

// Terms that differ in their coefficients alone are one term.
NormalForm with_like_terms_merged(const NormalForm& form);

// The rational by which b is a multiple of a, if it is one. Both have their like terms merged.
std::optional<Rational> ratio(const NormalForm& a, const NormalForm& b);

// Whether the form is one factor of this kind with coefficient and guard 1.
const Factor* sole_factor(const NormalForm& form, FactorKind kind, const Cond& context, ProofState& state);
// The form as a rational number, if it is one.
std::optional<Rational> as_number(const NormalForm& form);

}  // namespace gopt::verifier
