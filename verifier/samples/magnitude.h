// A number with the size of the terms that sums have put it together from: 1 + 1e9 - 1e9 is 1, of size 2e9. Where one
// side of a rule has terms of any size that leave nothing behind, and the other has not, the first may be there for
// what rounding makes of it (TwoSum, Kahan's sums, rounding by a large constant).
#pragma once

#include <algorithm>
#include <cmath>

#include "function_value.h"
#include "gopt/expr.h"

namespace gopt::verifier {

struct Magnitude {
  double value = 0;
  double size = 0;  // of sums: that of all terms together; of functions: in proportion to that of what they are of

  // How much larger the terms were than what they left: 1 where nothing went away.
  double cancelled() const { return size == std::fabs(value) ? 1 : size / std::fabs(value); }

  Magnitude() = default;
  Magnitude(double number) : value(number), size(std::fabs(number)) {}  // NOLINT(google-explicit-constructor)
  Magnitude(double number, double of_terms) : value(number), size(of_terms) {}
};

inline Magnitude operator+(const Magnitude& a, const Magnitude& b) { return {a.value + b.value, a.size + b.size}; }
inline Magnitude operator-(const Magnitude& a, const Magnitude& b) { return {a.value - b.value, a.size + b.size}; }
inline Magnitude operator*(const Magnitude& a, const Magnitude& b) { return {a.value * b.value, a.size * b.size}; }
inline Magnitude operator/(const Magnitude& a, const Magnitude& b) {
  return {a.value / b.value, a.size / std::fabs(b.value) * b.cancelled()};
}
inline Magnitude largest(const Magnitude& a, const Magnitude& b) {
  return std::isnan(a.value) || a.value > b.value ? a : b;
}
inline Magnitude smallest(const Magnitude& a, const Magnitude& b) {
  return std::isnan(a.value) || a.value < b.value ? a : b;
}
// The terms of a comparison are those of the difference.
inline Magnitude compared(bool holds, const Magnitude& a, const Magnitude& b) {
  return {holds ? 1.0 : 0.0, (a - b).cancelled()};
}
inline Magnitude is_less(const Magnitude& a, const Magnitude& b) { return compared(a.value < b.value, a, b); }
inline Magnitude is_equal(const Magnitude& a, const Magnitude& b) { return compared(a.value == b.value, a, b); }
inline Magnitude call_function(Function function, const Magnitude& x, const Magnitude& y) {
  const double value = function_value<double>(function, x.value, y.value);
  const double cancelled = std::max(x.cancelled(), y.size == 0 ? 1 : y.cancelled());
  return {value, value == 0 ? cancelled : std::fabs(value) * cancelled};
}

}  // namespace gopt::verifier
