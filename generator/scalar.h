// The numbers that generated terms are evaluated over: each is known exactly modulo the prime 2^61 - 1 and roughly as a
// double. The residue decides equality (a polynomial identity that holds on random values holds, but for a chance of
// degree / 2^61); the double decides signs and order, so that relu and max are the true ones. Division is exact; named
// functions are keyed random functions of the residue. Four lanes are independent draws. See exponent.h for the laws of
// the exponential function.
#pragma once

#include <array>
#include <cstdint>

#include "gopt/expr.h"

namespace gopt::generator {

constexpr int kLanes = 4;
constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

uint64_t mix(uint64_t x);  // a bijection that scatters bits
// Modulo kPrime.
uint64_t power(uint64_t base, uint64_t exponent);
uint64_t inverse(uint64_t a);  // precondition: not 0
double numeric(Function function, double x, double y);

// Any 128-bit number modulo kPrime.
inline uint64_t reduced(unsigned __int128 x) {
  const uint64_t once =
      static_cast<uint64_t>(x & kPrime) + static_cast<uint64_t>((x >> 61) & kPrime) + static_cast<uint64_t>(x >> 122);
  const uint64_t twice = (once & kPrime) + (once >> 61);
  return twice >= kPrime ? twice - kPrime : twice;
}
inline uint64_t multiply(uint64_t a, uint64_t b) { return reduced(static_cast<unsigned __int128>(a) * b); }

struct Scalar {
  std::array<uint64_t, kLanes> residue;
  std::array<double, kLanes> approximate;
  std::array<uint16_t, kLanes> exponent{};  // the number modulo kExponentOrder, where exponents are followed
};

Scalar scalar_from_double(double value);  // infinite, or with few bits after the point
Scalar scalar_from_ratio(const std::array<int64_t, kLanes>& numerators, int64_t denominator);

Scalar add(const Scalar& a, const Scalar& b);
Scalar subtract(const Scalar& a, const Scalar& b);
Scalar multiply(const Scalar& a, const Scalar& b);
// `ok` becomes false where the value is not defined (division by 0) or the order of two numbers cannot be told.
Scalar divide(const Scalar& a, const Scalar& b, bool& ok);
Scalar maximum(const Scalar& a, const Scalar& b, bool& ok);
Scalar minimum(const Scalar& a, const Scalar& b, bool& ok);
Scalar is_less(const Scalar& a, const Scalar& b, bool& ok);
Scalar is_equal(const Scalar& a, const Scalar& b);
Scalar choose(const Scalar& test, const Scalar& then, const Scalar& otherwise);
Scalar call(Function function, const Scalar& a, const Scalar& b, bool& ok);

}  // namespace gopt::generator
