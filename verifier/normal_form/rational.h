// Exact rational coefficients of normal forms. Overflow of 64 bits throws std::overflow_error, which ends the proof as
// Unknown.
#pragma once

#include <cstdint>
#include <optional>

namespace gopt::verifier {

class Rational {
 public:
  Rational(int64_t numerator = 0, int64_t denominator = 1);  // precondition: denominator != 0
  // The exact value of a double, where numerator and denominator are below 2^31.
  static std::optional<Rational> from_double(double value);

  // The rational of which this is the square, not negative, if there is one.
  friend std::optional<Rational> square_root(const Rational& square);

  int64_t numerator() const { return numerator_; }
  int64_t denominator() const { return denominator_; }  // positive
  bool is_zero() const { return numerator_ == 0; }
  Rational inverse() const { return {denominator_, numerator_}; }  // precondition: not zero

  friend Rational operator-(const Rational& a) { return {-a.numerator_, a.denominator_}; }
  friend Rational operator*(const Rational& a, const Rational& b);
  friend Rational operator+(const Rational& a, const Rational& b);
  friend bool operator==(const Rational&, const Rational&) = default;

 private:
  int64_t numerator_, denominator_;
};

}  // namespace gopt::verifier
