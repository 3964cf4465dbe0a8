// Each law of the table, numerically.
#include "normal_form/laws.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace gopt {

using namespace verifier;

namespace {

double value(Function function, double x, double y = 0) {
  using T = double;
  (void)y;
  switch (function) {
#define GOPT_FUNCTION(name, arity, text, numeric) \
  case Function::name:                            \
    return numeric;
#include "gopt/function_table.def"
#undef GOPT_FUNCTION
  }
  return NAN;
}
const std::vector<Function>& functions() {
  static const std::vector<Function> all{
#define GOPT_FUNCTION(name, arity, text, numeric) Function::name,
#include "gopt/function_table.def"
#undef GOPT_FUNCTION
  };
  return all;
}

TEST(Laws, ValuesAtZero) {
  for (Function f : functions()) {
    const auto expected = value_at_zero(f);
    if (!expected) continue;
    EXPECT_EQ(value(f, 0), static_cast<double>(expected->numerator())) << function_text(f);
  }
}

TEST(Laws, Parities) {
  for (Function f : functions()) {
    if (parity_of(f) == Parity::None) continue;
    const double sign = parity_of(f) == Parity::Odd ? -1 : 1;
    for (double x : {0.125, 0.3, 0.7, 0.99}) EXPECT_NEAR(value(f, -x), sign * value(f, x), 1e-12) << function_text(f);
  }
}

TEST(Laws, Exponentials) {
  for (double a : {-2.0, -0.3, 0.0, 1.7})
    for (double b : {-1.1, 0.4, 2.5}) {
      EXPECT_NEAR(value(Function::Exp, a + b), value(Function::Exp, a) * value(Function::Exp, b), 1e-9);
      EXPECT_NEAR(1 / value(Function::Exp, a), value(Function::Exp, -a), 1e-9);
    }
}

TEST(Laws, Squares) {
  for (double x : {-3.0, -0.4, 0.0, 0.9, 12.0}) {
    EXPECT_NEAR(std::pow(value(Function::Sin, x), 2) + std::pow(value(Function::Cos, x), 2), 1, 1e-12);
    EXPECT_NEAR(std::pow(value(Function::Sqrt, x * x), 2), x * x, 1e-9);
  }
}

TEST(Laws, RootsOfProducts) {
  const auto root = [](double x) { return value(Function::Sqrt, x); };
  for (double x : {0.0, 0.4, 7.0}) {
    for (double y : {-3.0, -0.5, 0.0, 2.5}) {
      EXPECT_NEAR(root(y * y * x), std::fabs(y) * root(x), 1e-12);
      EXPECT_NEAR(root(9.0 / 4 * x), 1.5 * root(x), 1e-12);
    }
  }
  EXPECT_TRUE(std::isnan(root(4 * -2.0)) && std::isnan(2 * root(-2.0))) << "they have no value at the same places";
}

TEST(Laws, Magnitudes) {
  for (double x : {-2.0, 0.0, 0.5})
    for (double y : {-1.5, 0.0, 3.0}) EXPECT_EQ(std::max(x * y, -(x * y)), std::max(x, -x) * std::max(y, -y));
}

TEST(Laws, Powers) {
  for (double x : {0.3, 1.0, 2.5}) {
    EXPECT_NEAR(value(Function::Pow, x, 0), 1, 1e-12);
    EXPECT_NEAR(value(Function::Pow, x, 3), x * x * x, 1e-9);
    EXPECT_NEAR(value(Function::Pow, x, -1), 1 / x, 1e-9);
    EXPECT_NEAR(value(Function::Pow, x, 0.5), std::sqrt(x), 1e-9);
  }
}

TEST(Laws, Angles) {
  for (double x : {-2.2, -0.3, 0.0, 1.1, 3.0}) {
    for (double y : {-1.7, 0.0, 0.4, 2.6}) {
      const double sine = std::sin(x), cosine = std::cos(x);
      EXPECT_NEAR(value(Function::Sin, x + y), sine * std::cos(y) + cosine * std::sin(y), 1e-12);
      EXPECT_NEAR(value(Function::Cos, x + y), cosine * std::cos(y) - sine * std::sin(y), 1e-12);
      EXPECT_NEAR(value(Function::Tan, x), sine / cosine, 1e-9);
    }
  }
}

TEST(Laws, HyperbolicFunctionsAndTheirInverses) {
  for (double x : {-3.0, -0.7, 0.0, 0.2, 2.5}) {
    const double up = std::exp(x), down = std::exp(-x);
    EXPECT_NEAR(value(Function::Sinh, x), (up - down) / 2, 1e-12);
    EXPECT_NEAR(value(Function::Cosh, x), (up + down) / 2, 1e-12);
    EXPECT_NEAR(value(Function::Tanh, x), 1 - 2 / (1 + up * up), 1e-12);
    EXPECT_NEAR(value(Function::Asinh, x), std::log(x + std::sqrt(x * x + 1)), 1e-12);
  }
  for (double x : {1.0, 1.5, 20.0}) EXPECT_NEAR(value(Function::Acosh, x), std::log(x + std::sqrt(x * x - 1)), 1e-12);
  for (double x : {-0.9, 0.0, 0.5})
    EXPECT_NEAR(value(Function::Atanh, x), (std::log(1 + x) - std::log(1 - x)) / 2, 1e-12);
}

TEST(Laws, Roundings) {
  for (double x : {-2.5, -1.5, -0.3, 0.0, 0.5, 1.5, 3.75}) {
    const auto at = [&](Function f, double v) { return value(f, v); };
    EXPECT_EQ(at(Function::Round, x + 2), at(Function::Round, x) + 2);
    EXPECT_EQ(at(Function::Floor, x + 3), at(Function::Floor, x) + 3);
    EXPECT_EQ(at(Function::Ceil, x), -at(Function::Floor, -x));
    EXPECT_EQ(at(Function::Trunc, x - at(Function::Trunc, x)), 0);
    for (double y : {-2.0, -0.75, 1.25, 4.0}) {
      const double remainder = value(Function::Fmod, x, y);
      EXPECT_EQ(remainder, x - y * at(Function::Trunc, x / y));
      EXPECT_EQ(value(Function::Fmod, remainder, y), remainder);
      EXPECT_EQ(remainder * y < 0 ? remainder + y : remainder, x - y * at(Function::Floor, x / y));
    }
  }
}

TEST(Laws, PowersOfHalvesAndRoots) {
  for (double x : {0.2, 1.0, 7.5}) {
    EXPECT_NEAR(value(Function::Pow, x, 1.5), x * std::sqrt(x), 1e-12);
    EXPECT_NEAR(value(Function::Pow, x, -0.5), 1 / std::sqrt(x), 1e-12);
    EXPECT_NEAR(value(Function::Pow, x, -2), 1 / (x * x), 1e-9);
    EXPECT_NEAR(value(Function::Sqrt, 1 / x), 1 / value(Function::Sqrt, x), 1e-12);
    EXPECT_NEAR(value(Function::Log, std::sqrt(x)), std::log(x) / 2, 1e-12);
    for (double y : {-1.3, 0.0, 0.7}) EXPECT_NEAR(value(Function::Pow, x, y), std::exp(y * std::log(x)), 1e-12);
  }
}

TEST(Laws, LogarithmsOfOneAndAnExponential) {
  for (double x : {-5.0, -0.5, 0.0, 1.5, 6.0}) {
    const double plain = std::log(1 + std::exp(x)), larger = std::max(x, 0.0);
    EXPECT_NEAR(std::log(1 + std::exp(-std::fabs(x))), plain - larger, 1e-12);
    EXPECT_NEAR(std::log(1 + std::exp(std::fabs(x))), std::fabs(x) + plain - larger, 1e-12);
    EXPECT_GE(value(Function::Exp, x), 1 + x);
  }
}

}  // namespace
}  // namespace gopt
