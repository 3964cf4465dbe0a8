#include "scalar.h"

#include <algorithm>
#include <cmath>

#include "exponent.h"

namespace gopt::generator {
namespace {

uint64_t below_prime(uint64_t x) { return x >= kPrime ? x - kPrime : x; }

uint64_t residue_of(int64_t value) {
  const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? -value : value) % kPrime;
  return value < 0 && magnitude ? kPrime - magnitude : magnitude;
}

uint16_t exponent_of(int64_t value) {
  const int64_t rest = value % int64_t{kExponentOrder};
  return static_cast<uint16_t>(rest < 0 ? rest + kExponentOrder : rest);
}

// -1, 0, 1; where the doubles are too close to tell and the residues differ, `ok` becomes false.
int compare(const Scalar& a, const Scalar& b, int lane, bool& ok) {
  if (a.residue[lane] == b.residue[lane]) return 0;
  const double x = a.approximate[lane], y = b.approximate[lane];
  if (std::isinf(x) || std::isinf(y)) return x < y ? -1 : 1;
  if (!(std::abs(x - y) > 1e-9 * (std::abs(x) + std::abs(y)))) ok = false;
  return x < y ? -1 : 1;
}

Scalar truth(const std::array<bool, kLanes>& values) {
  Scalar result;
  for (int lane = 0; lane < kLanes; lane++) {
    result.residue[lane] = values[lane] ? 1 : 0;
    result.approximate[lane] = values[lane] ? 1 : 0;
    result.exponent[lane] = values[lane] ? 1 : 0;
  }
  return result;
}

void copy_lane(const Scalar& from, int lane, Scalar& to) {
  to.residue[lane] = from.residue[lane];
  to.approximate[lane] = from.approximate[lane];
  to.exponent[lane] = from.exponent[lane];
}

}  // namespace

uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ULL;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ULL;
  return x ^ (x >> 32);
}

double numeric(Function function, double x, [[maybe_unused]] double y) {
  using T = double;
  switch (function) {
#define GOPT_FUNCTION(name, arity, text, numeric_expression) \
  case Function::name:                                       \
    return numeric_expression;
#include "gopt/function_table.def"
#undef GOPT_FUNCTION
  }
  return 0;
}

uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent; exponent >>= 1, base = multiply(base, base))
    if (exponent & 1) result = multiply(result, base);
  return result;
}

uint64_t inverse(uint64_t a) { return power(a, kPrime - 2); }

Scalar scalar_from_double(double value) {
  if (std::isinf(value)) {  // the start of a maximum: no number, so any residue that no draw gives
    Scalar infinite;
    infinite.residue.fill(mix(value < 0 ? 1 : 2) % kPrime);
    infinite.approximate.fill(value);
    return infinite;
  }
  int64_t denominator = 1;
  while (value * static_cast<double>(denominator) != std::floor(value * static_cast<double>(denominator)) &&
         denominator < (int64_t{1} << 40))
    denominator *= 2;
  const auto numerator = static_cast<int64_t>(value * static_cast<double>(denominator));
  Scalar result = scalar_from_ratio({numerator, numerator, numerator, numerator}, denominator);
  result.approximate.fill(value);
  return result;
}

Scalar scalar_from_ratio(const std::array<int64_t, kLanes>& numerators, int64_t denominator) {
  static const uint64_t kOver256 = inverse(256);  // what random draws are over
  const uint64_t by = denominator == 256 ? kOver256 : inverse(residue_of(denominator));
  Scalar result;
  for (int lane = 0; lane < kLanes; lane++) {
    result.residue[lane] = multiply(residue_of(numerators[lane]), by);
    result.approximate[lane] = static_cast<double>(numerators[lane]) / static_cast<double>(denominator);
  }
  Scalar above, below;
  for (int lane = 0; lane < kLanes; lane++) {
    above.exponent[lane] = exponent_of(numerators[lane]);
    below.exponent[lane] = exponent_of(denominator);
  }
  set_exponents_of_quotient(above, below, result);
  return result;
}

Scalar add(const Scalar& a, const Scalar& b) {
  Scalar result;
  for (int lane = 0; lane < kLanes; lane++) {
    result.residue[lane] = below_prime(a.residue[lane] + b.residue[lane]);
    result.approximate[lane] = a.approximate[lane] + b.approximate[lane];
  }
  return result;
}

Scalar subtract(const Scalar& a, const Scalar& b) {
  Scalar result;
  for (int lane = 0; lane < kLanes; lane++) {
    result.residue[lane] = below_prime(a.residue[lane] + kPrime - b.residue[lane]);
    result.approximate[lane] = a.approximate[lane] - b.approximate[lane];
  }
  return result;
}

Scalar multiply(const Scalar& a, const Scalar& b) {
  Scalar result;
  for (int lane = 0; lane < kLanes; lane++) {
    result.residue[lane] = multiply(a.residue[lane], b.residue[lane]);
    result.approximate[lane] = a.approximate[lane] * b.approximate[lane];
  }
  return result;
}

// One inversion for all lanes: the inverse of the product, times the other divisors.
Scalar divide(const Scalar& a, const Scalar& b, bool& ok) {
  std::array<uint64_t, kLanes + 1> product{1};
  for (int lane = 0; lane < kLanes; lane++) product[lane + 1] = multiply(product[lane], b.residue[lane]);
  if (product[kLanes] == 0) ok = false;
  uint64_t rest = inverse(product[kLanes]);
  Scalar result;
  for (int lane = kLanes - 1; lane >= 0; lane--) {
    result.residue[lane] = multiply(a.residue[lane], multiply(rest, product[lane]));
    rest = multiply(rest, b.residue[lane]);
    result.approximate[lane] = a.approximate[lane] / b.approximate[lane];
  }
  return result;
}

Scalar maximum(const Scalar& a, const Scalar& b, bool& ok) {
  Scalar result;
  for (int lane = 0; lane < kLanes; lane++) copy_lane(compare(a, b, lane, ok) < 0 ? b : a, lane, result);
  return result;
}

Scalar minimum(const Scalar& a, const Scalar& b, bool& ok) {
  Scalar result;
  for (int lane = 0; lane < kLanes; lane++) copy_lane(compare(a, b, lane, ok) > 0 ? b : a, lane, result);
  return result;
}

Scalar is_less(const Scalar& a, const Scalar& b, bool& ok) {
  std::array<bool, kLanes> values;
  for (int lane = 0; lane < kLanes; lane++) values[lane] = compare(a, b, lane, ok) < 0;
  return truth(values);
}

Scalar is_equal(const Scalar& a, const Scalar& b) {
  std::array<bool, kLanes> values;
  for (int lane = 0; lane < kLanes; lane++) values[lane] = a.residue[lane] == b.residue[lane];
  return truth(values);
}

Scalar choose(const Scalar& test, const Scalar& then, const Scalar& otherwise) {
  Scalar result;
  for (int lane = 0; lane < kLanes; lane++) copy_lane(test.residue[lane] ? then : otherwise, lane, result);
  return result;
}

namespace {

// A point of the unit circle that the number picks, so that the squares of sine and cosine add up to 1; that of the
// opposite number is its mirror image, so that sine is odd and cosine even.
uint64_t circle_point(uint64_t angle, bool is_sine) {
  const uint64_t magnitude = std::min(angle, kPrime - angle);
  const uint64_t picked = magnitude == 0 ? 0 : mix(magnitude ^ 0x51ed270b7a1ce9d3ULL) % kPrime;
  const uint64_t t = magnitude == angle ? picked : below_prime(kPrime - picked), square = multiply(t, t);
  const uint64_t over = inverse(below_prime(1 + square));
  return multiply(is_sine ? below_prime(t + t) : below_prime(1 + kPrime - square), over);
}

}  // namespace

Scalar call(Function function, const Scalar& a, const Scalar& b, bool& ok) {
  Scalar result;
  const uint64_t key = mix(static_cast<uint64_t>(function) + 0x9e3779b97f4a7c15ULL);
  for (int lane = 0; lane < kLanes; lane++) {
    const bool is_circular = function == Function::Sin || function == Function::Cos;
    result.residue[lane] = is_circular ? circle_point(a.residue[lane], function == Function::Sin)
                                       : mix(mix(a.residue[lane] ^ key) + b.residue[lane]) % kPrime;
    result.approximate[lane] = numeric(function, a.approximate[lane], b.approximate[lane]);
    // A root or logarithm of what is negative somewhere: any number will do that depends on the argument alone.
    if (std::isnan(result.approximate[lane]))
      result.approximate[lane] = numeric(function, std::fabs(a.approximate[lane]), b.approximate[lane]);
    if (!std::isfinite(result.approximate[lane])) ok = false;
  }
  return result;
}

}  // namespace gopt::generator
