#include "rational.h"

#include <cmath>
#include <numeric>
#include <stdexcept>

namespace gopt::verifier {
namespace {

int64_t checked_multiply(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) throw std::overflow_error("a coefficient exceeds 64 bits");
  return r;
}
int64_t checked_sum(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) throw std::overflow_error("a coefficient exceeds 64 bits");
  return r;
}

}  // namespace

Rational::Rational(int64_t numerator, int64_t denominator) {
  const int64_t divisor = std::gcd(numerator, denominator);
  const int64_t sign = denominator < 0 ? -1 : 1;
  numerator_ = divisor == 0 ? 0 : sign * (numerator / divisor);
  denominator_ = divisor == 0 ? 1 : sign * (denominator / divisor);
}

std::optional<Rational> Rational::from_double(double value) {
  constexpr double kLimit = 2147483648.0;
  if (!std::isfinite(value)) return std::nullopt;
  int64_t denominator = 1;
  double scaled = value;
  while (scaled != std::floor(scaled)) {
    scaled *= 2;
    denominator *= 2;
    if (denominator >= (int64_t{1} << 31)) return std::nullopt;
  }
  if (std::fabs(scaled) >= kLimit) return std::nullopt;
  return Rational(static_cast<int64_t>(scaled), denominator);
}

namespace {

std::optional<int64_t> integer_root(int64_t square) {
  if (square < 0) return std::nullopt;
  auto root = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(square))));
  constexpr int64_t kLargest = int64_t{1} << 31;
  return root < kLargest && root * root == square ? std::optional(root) : std::nullopt;
}

}  // namespace

std::optional<Rational> square_root(const Rational& square) {
  const auto above = integer_root(square.numerator_), below = integer_root(square.denominator_);
  return above && below ? std::optional(Rational(*above, *below)) : std::nullopt;
}

Rational operator*(const Rational& a, const Rational& b) {
  // Cross-reduced first, so that what fits does not overflow on the way.
  const Rational x(a.numerator_, b.denominator_), y(b.numerator_, a.denominator_);
  return {checked_multiply(x.numerator_, y.numerator_), checked_multiply(x.denominator_, y.denominator_)};
}
Rational operator+(const Rational& a, const Rational& b) {
  return {checked_sum(checked_multiply(a.numerator_, b.denominator_), checked_multiply(b.numerator_, a.denominator_)),
          checked_multiply(a.denominator_, b.denominator_)};
}

}  // namespace gopt::verifier
