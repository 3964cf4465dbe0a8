// Plain doubles, of many draws at once, that a tape runs over in trials: with zeros and functions as they are, which
// residues do not have. In every second draw operations are those of the interpreter; in the others what has no value
// (a quotient by 0, the logarithm of 0) leaves none in all that uses it, since a rule may not rely on how infinities
// come out. See scalar.h for the other numbers.
#pragma once

#include <cmath>
#include <limits>

#include "scalar.h"

namespace gopt::generator {

constexpr size_t kDraws = 16;
constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

constexpr bool has_infinities(size_t draw) { return draw % 2 == 1; }

struct Reals {
  std::array<double, kDraws> draws;
};

inline Reals reals_from_double(double value) {
  Reals result;
  result.draws.fill(value);
  return result;
}

template <class Operation>
Reals each_draw(const Reals& a, const Reals& b, const Operation& operation) {
  Reals result;
  for (size_t draw = 0; draw < kDraws; draw++) result.draws[draw] = operation(a.draws[draw], b.draws[draw]);
  return result;
}

inline Reals add(const Reals& a, const Reals& b) {
  return each_draw(a, b, [](double x, double y) { return x + y; });
}
inline Reals subtract(const Reals& a, const Reals& b) {
  return each_draw(a, b, [](double x, double y) { return x - y; });
}
inline Reals multiply(const Reals& a, const Reals& b) {
  return each_draw(a, b, [](double x, double y) { return x * y; });
}
// `ok` is what scalars need.
inline Reals divide(const Reals& a, const Reals& b, bool& /*ok*/) {
  Reals result;
  for (size_t draw = 0; draw < kDraws; draw++)
    result.draws[draw] = b.draws[draw] == 0 && !has_infinities(draw) ? kNoValue : a.draws[draw] / b.draws[draw];
  return result;
}
inline Reals maximum(const Reals& a, const Reals& b, bool& /*ok*/) {
  return each_draw(a, b, [](double x, double y) { return x != x ? x : y != y ? y : x < y ? y : x; });
}
inline Reals minimum(const Reals& a, const Reals& b, bool& /*ok*/) {
  return each_draw(a, b, [](double x, double y) { return x != x ? x : y != y ? y : y < x ? y : x; });
}
inline Reals is_less(const Reals& a, const Reals& b, bool& /*ok*/) {
  return each_draw(a, b, [](double x, double y) { return x != x || y != y ? kNoValue : x < y ? 1.0 : 0.0; });
}
inline Reals is_equal(const Reals& a, const Reals& b) {
  return each_draw(a, b, [](double x, double y) { return x != x || y != y ? kNoValue : x == y ? 1.0 : 0.0; });
}
inline Reals choose(const Reals& test, const Reals& then, const Reals& otherwise) {
  Reals result;
  for (size_t draw = 0; draw < kDraws; draw++)
    result.draws[draw] = test.draws[draw] != test.draws[draw] ? kNoValue
                         : test.draws[draw] != 0              ? then.draws[draw]
                                                              : otherwise.draws[draw];
  return result;
}
inline Reals call(Function function, const Reals& a, const Reals& b, bool& /*ok*/) {
  Reals result;
  for (size_t draw = 0; draw < kDraws; draw++) {
    const double value = numeric(function, a.draws[draw], b.draws[draw]);
    const bool is_pole = std::isinf(value) && std::fabs(a.draws[draw]) < 1;  // of a logarithm, say, not of exp
    result.draws[draw] = is_pole && !has_infinities(draw) ? kNoValue : value;
  }
  return result;
}

}  // namespace gopt::generator
