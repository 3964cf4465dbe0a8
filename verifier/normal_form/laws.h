// The table of what the proof may use of named functions; all else is uninterpreted. Each row is tested numerically.
//   exp(a + b) = exp(a) exp(b), 1/exp(a) = exp(-a), exp(0) = 1     everywhere
//   sqrt(x) * sqrt(x) = x                                          where x >= 0 (elsewhere the root is not a number)
//   sin(x)^2 + cos(x)^2 = 1                                        for finite x
//   f(0) as in value_at_zero                                       everywhere
//   erf, sin, tan, asin, atan, sinh, asinh, atanh, tanh are odd, cos and cosh even
//   round, trunc and narrow are odd; ceil(x) = -floor(-x); floor(n + x) = n + floor(x), round(n) = trunc(n) = n for an
//   integer n (a sum of integer multiples of sizes, comparisons and rounded numbers)
//   sqrt(c^2 x^2) = |c x|, sqrt(c^2 x) = |c| sqrt(x); sqrt(y^2 x) = |y| sqrt(x)   where x >= 0 by its form
//   sqrt(e^x) = e^(x/2); ln(e^a b) = a + ln b; ln(b / c) = ln b - ln c   where c > 0
//   a product over a range of x y is that of x times that of y; |x y| = |x| |y|, also over a range
//   comparisons are 1 or 0, and so their own squares
//   e^x - e^y has the sign of x - y; tanh, erf, atan, sinh and asinh of x have that of x
//   ln(1 + x) >= 0   where x >= 0
//   pow(x, n/2) as products of x and sqrt(x), and what is divided by, for small n; pow(x, y) = e^(y ln x) where x > 0
//   ln(1 + e^-|x|) = ln(1 + e^x) - max(x, 0), ln(1 + e^|x|) = |x| more; ln sqrt(x) = ln(x) / 2; ln(a b) = ln a + ln b
//   where a >= 0; sqrt(1/x) = 1 / sqrt(x)
//   sin(x + y), cos(x + y) by those of x and y; tan = sin / cos
//   sinh, cosh, tanh by exponentials; asinh, acosh, atanh by logarithms
//   a product over a range of e^x is e to the sum; e^x >= 1 + x; a share of a sum of what is not negative is at most 1
//   round(2 n + x) = 2 n + round(x); trunc(x - trunc(x)) = 0; floor(x), round(x), trunc(x) are within 1, 1/2, 1 of x
//   fmod(x, y) = x - y trunc(x/y), that of itself by y is itself; it is x - y floor(x/y) where y is added if its sign
//   is not that of y bounds and signs of functions as in ranges.cc; what rises or falls with its argument as in
//   monotone.cc
#pragma once

#include <optional>

#include "solver/proof_state.h"

namespace gopt::verifier {

// f(0), where it is rational.
std::optional<Rational> value_at_zero(Function function);
// Whether the function has no value for some argument. (What Log, Pow, Tan and Fmod have none for is demanded apart.)
bool has_partial_domain(Function function);
bool is_odd_and_increasing(Function function);  // everywhere, and so of its argument's sign
enum class Parity { None, Odd, Even };
Parity parity_of(Function function);

// Whether every term is a product of squares and of what is never negative.
bool is_plainly_nonnegative(const NormalForm& form);

// Applies sin^2 + cos^2 = 1 and sqrt * sqrt wherever they make the form smaller; true where the form changed.
bool apply_product_laws(NormalForm& form, ProofState& state);

}  // namespace gopt::verifier
