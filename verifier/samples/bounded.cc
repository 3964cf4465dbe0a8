#include "bounded.h"

#include <algorithm>

#include "function_value.h"

namespace gopt::verifier {
namespace {

using Real = long double;
constexpr Real kRounding = std::numeric_limits<Real>::epsilon();
constexpr Real kLeast = std::numeric_limits<Real>::min();
// Of a function of the C library, in units of rounding.
constexpr Real kFunctionRounding = 16 * kRounding;
// Bounds are rounded, too.
constexpr Real kSlack = 1 + 64 * kRounding;

bool are_known(const Bounded& a, const Bounded& b) { return a.is_known() && b.is_known(); }
bool is_finite(const Bounded& a) { return std::isfinite(a.value); }

// A result of finite numbers that exceeds all numbers of this type says nothing of the real one.
Bounded bounded(Real value, Real error) {
  if (!std::isfinite(value) || !std::isfinite(error)) return Bounded::unknown();
  return {value, error * kSlack};
}

// Products of two such numbers are exact.
bool is_short(Real a) { return static_cast<Real>(static_cast<float>(a)) == a; }

// Where an operand is infinite or not a number: the result, if it does not depend on what is not known.
Bounded special(Real value, bool is_certain) { return is_certain ? Bounded(value, 0) : Bounded::unknown(); }

// Whether the sign is known: the number is not 0.
bool is_nonzero(const Bounded& a) { return std::fabs(a.value) > a.error; }

template <class F>
Bounded step(const Bounded& a, const Bounded& b, const F& compare) {
  if (!are_known(a, b)) return Bounded::unknown();
  const bool is_certain = (a.error == 0 && b.error == 0) || std::fabs(a.value - b.value) > (a.error + b.error) * kSlack;
  return is_certain ? Bounded(compare(a.value, b.value) ? 1 : 0, 0) : Bounded::unknown();
}

// Below and above `a`, as far as it may be from its value; nothing beside it where it is exact.
struct Ends {
  explicit Ends(const Bounded& a) : points{a.value, a.value - a.error, a.value + a.error}, count(a.error > 0 ? 3 : 1) {}
  Real points[3];
  int count;
};

bool is_exact(Function f) {
  return f == Function::Floor || f == Function::Ceil || f == Function::Round || f == Function::Trunc ||
         f == Function::Narrow || f == Function::IsNan || f == Function::Fmod;
}
// Whether an infinite value may be a finite one that is too large.
bool may_overflow(Function f, Real x) {
  return f == Function::Exp || f == Function::Sinh || f == Function::Cosh || (f == Function::Pow && x != 0);
}

int arity_of(Function function) {
  switch (function) {
#define GOPT_FUNCTION(name, arity, text, numeric) \
  case Function::name:                            \
    return arity;
#include "gopt/function_table.def"
#undef GOPT_FUNCTION
  }
  return 1;
}

}  // namespace

Bounded operator+(const Bounded& a, const Bounded& b) {
  if (!are_known(a, b)) return Bounded::unknown();
  const Real sum = a.value + b.value;
  if (!is_finite(a) || !is_finite(b)) return special(sum, true);
  // What the sum has lost, exactly.
  const Real part = sum - a.value, lost = (a.value - (sum - part)) + (b.value - part);
  return bounded(sum, a.error + b.error + std::fabs(lost));
}

Bounded operator-(const Bounded& a, const Bounded& b) { return a + Bounded(-b.value, b.error); }

Bounded operator*(const Bounded& a, const Bounded& b) {
  if (!are_known(a, b)) return Bounded::unknown();
  const Real product = a.value * b.value;
  if (!is_finite(a) || !is_finite(b))
    return special(product, (a.error == 0 || is_nonzero(a)) && (b.error == 0 || is_nonzero(b)));
  if ((a.value == 0 && a.error == 0) || (b.value == 0 && b.error == 0)) return {0, 0};
  const Real lost = is_short(a.value) && is_short(b.value) ? 0 : std::fabs(product) * kRounding + kLeast;
  return bounded(product, std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error + lost);
}

Bounded operator/(const Bounded& a, const Bounded& b) {
  if (!are_known(a, b)) return Bounded::unknown();
  const Real quotient = a.value / b.value;
  if (!is_finite(a) || !is_finite(b) || (b.value == 0 && b.error == 0))
    return special(quotient, (a.error == 0 || is_nonzero(a)) && (b.error == 0 || is_nonzero(b)));
  if (!is_nonzero(b)) return Bounded::unknown();
  if (a.value == 0 && a.error == 0) return {0, 0};
  const bool divides = is_short(quotient) && is_short(b.value) && quotient * b.value == a.value;
  const Real lost = divides ? 0 : std::fabs(quotient) * kRounding + kLeast;
  return bounded(quotient, (a.error + std::fabs(quotient) * b.error) / (std::fabs(b.value) - b.error) + lost);
}

Bounded largest(const Bounded& a, const Bounded& b) {
  if (!are_known(a, b)) return Bounded::unknown();
  if (std::isnan(a.value) || a.value - a.error >= b.value + b.error) return a;
  if (std::isnan(b.value) || b.value - b.error >= a.value + a.error) return b;
  return {std::max(a.value, b.value), std::max(a.error, b.error)};
}

Bounded smallest(const Bounded& a, const Bounded& b) {
  const Bounded r = largest({-a.value, a.error}, {-b.value, b.error});
  return {-r.value, r.error};
}

Bounded is_less(const Bounded& a, const Bounded& b) {
  return step(a, b, [](Real x, Real y) { return x < y; });
}
Bounded is_equal(const Bounded& a, const Bounded& b) {
  return step(a, b, [](Real x, Real y) { return x == y; });
}

Bounded call_function(Function function, const Bounded& x, const Bounded& y) {
  constexpr Real kWidest = 1e-3L;  // beyond, the values at the ends do not tell those between
  const Bounded second = arity_of(function) == 2 ? y : Bounded();
  if (!are_known(x, second)) return Bounded::unknown();
  const Real value = function_value<Real>(function, x.value, second.value);
  const bool is_sharp = x.error == 0 && second.error == 0;
  if (!std::isfinite(value))
    return special(value, is_sharp && !(is_finite(x) && is_finite(second) && may_overflow(function, x.value)));
  if (!is_finite(x) || !is_finite(second)) return special(value, is_sharp);
  if (x.error > kWidest * std::max<Real>(1, std::fabs(x.value)) || second.error > kWidest) return Bounded::unknown();
  const Ends first_ends(x), second_ends(second);
  Real spread = 0;
  for (int i = 0; i < first_ends.count; i++) {
    for (int j = 0; j < second_ends.count; j++) {
      const Real end = function_value<Real>(function, first_ends.points[i], second_ends.points[j]);
      if (!std::isfinite(end)) return Bounded::unknown();
      spread = std::max(spread, std::fabs(end - value));
    }
  }
  return bounded(value, 2 * spread + (is_exact(function) ? 0 : std::fabs(value) * kFunctionRounding));
}

bool surely_differ(const Bounded& a, const Bounded& b) {
  if (!are_known(a, b)) return false;
  if (!is_finite(a) || !is_finite(b)) return is_finite(a) != is_finite(b);
  return std::fabs(a.value - b.value) > (a.error + b.error) * kSlack;
}

}  // namespace gopt::verifier
