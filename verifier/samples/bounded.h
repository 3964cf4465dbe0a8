// A number with a bound on what rounding has made of it, so that a difference of two sides is known to be one of real
// numbers: x + 1e18 - 1e18 is not x in doubles. Slower than a double, and asked only where doubles differ.
#pragma once

#include <cmath>
#include <limits>

#include "gopt/expr.h"

namespace gopt::verifier {

struct Bounded {
  long double value = 0;
  // The value over the reals is at most this far away; infinite where nothing is known. A value that is infinite or
  // NaN and has no error is meant: it is a constant, or the quotient by what is 0.
  long double error = 0;

  Bounded() = default;
  Bounded(double exact) : value(exact) {}  // NOLINT(google-explicit-constructor): as a double is a number
  Bounded(long double middle, long double bound) : value(middle), error(bound) {}
  static Bounded unknown() { return {0, std::numeric_limits<long double>::infinity()}; }
  bool is_known() const { return std::isfinite(error); }
};

Bounded operator+(const Bounded& a, const Bounded& b);
Bounded operator-(const Bounded& a, const Bounded& b);
Bounded operator*(const Bounded& a, const Bounded& b);
Bounded operator/(const Bounded& a, const Bounded& b);
Bounded largest(const Bounded& a, const Bounded& b);
Bounded smallest(const Bounded& a, const Bounded& b);
Bounded is_less(const Bounded& a, const Bounded& b);
Bounded is_equal(const Bounded& a, const Bounded& b);
// Of one argument or two; `y` is not looked at where the function has one.
Bounded call_function(Function function, const Bounded& x, const Bounded& y);

// Whether the two are different numbers, or one of them alone has no finite value, however they were rounded.
bool surely_differ(const Bounded& a, const Bounded& b);

}  // namespace gopt::verifier
