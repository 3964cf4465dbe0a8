// A number with the size of the terms that sums have put it together from: 1 + 1e9 - 1e9 is 1, of size 2e9. Where one
// side of a rule has terms of any size that leave nothing behind, and the other has not, the first may be there for
// what rounding makes of it (TwoSum, Kahan's sums, rounding by a large constant).
#pragma once

#include <cmath>

#include "function_value.h"
#include "gopt/expr.h"

namespace gopt::verifier {

struct Magnitude {
  double value = 0;
  double size = 0;  // of sums: that of all terms together; of functions and comparisons: of their value

  Magnitude() = default;
  Magnitude(double number) : value(number), size(std::fabs(number)) {}  // NOLINT(google-explicit-constructor)
  Magnitude(double number, double of_terms) : value(number), size(of_terms) {}
};

inline Magnitude operator+(const Magnitude& a, const Magnitude& b) { return {a.value + b.value, a.size + b.size}; }
inline Magnitude operator-(const Magnitude& a, const Magnitude& b) { return {a.value - b.value, a.size + b.size}; }
inline Magnitude operator*(const Magnitude& a, const Magnitude& b) { return {a.value * b.value, a.size * b.size}; }
inline Magnitude operator/(const Magnitude& a, const Magnitude& b) {
  return {a.value / b.value, a.size / std::fabs(b.value)};
}
inline Magnitude largest(const Magnitude& a, const Magnitude& b) {
  return std::isnan(a.value) || a.value > b.value ? a : b;
}
inline Magnitude smallest(const Magnitude& a, const Magnitude& b) {
  return std::isnan(a.value) || a.value < b.value ? a : b;
}
inline Magnitude is_less(const Magnitude& a, const Magnitude& b) { return a.value < b.value ? 1.0 : 0.0; }
inline Magnitude is_equal(const Magnitude& a, const Magnitude& b) { return a.value == b.value ? 1.0 : 0.0; }
inline Magnitude call_function(Function function, const Magnitude& x, const Magnitude& y) {
  return function_value<double>(function, x.value, y.value);
}

}  // namespace gopt::verifier
