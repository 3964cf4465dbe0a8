// Exponents of generated values, as Mirage (OSDI'25) has them: beside its residue modulo kPrime a number is known
// modulo the prime q that divides kPrime - 1, and exp(x) is g^(x mod q) for a g of order q. So exp(x + y) = exp(x)
// exp(y), and what follows, holds of residues. Lanes in which unequal numbers have equal exponentials are one in q, and
// independent. What a function gives, and a quotient whose divisor is 0 modulo q, have an exponent that is a random
// function of the residue: the laws of exp are then missed for it, never invented.
#pragma once

#include "scalar.h"

namespace gopt::generator {

constexpr uint32_t kExponentOrder = 1321;  // the largest prime that divides kPrime - 1

// These set the exponents of `result`, whose residues are known.
void set_exponents_of_sum(const Scalar& a, const Scalar& b, Scalar& result);
void set_exponents_of_difference(const Scalar& a, const Scalar& b, Scalar& result);
void set_exponents_of_product(const Scalar& a, const Scalar& b, Scalar& result);
void set_exponents_of_quotient(const Scalar& a, const Scalar& b, Scalar& result);
// Sets the residues too where the function is exponential.
void set_exponents_of_call(Function function, const Scalar& a, Scalar& result);

}  // namespace gopt::generator
