// The functions that are printed beside generated loops, against libm.
#include <gtest/gtest.h>

#include <cmath>

#include "gopt_math.h"

namespace {

struct Row {
  const char* name;
  float (*fast)(float);
  double (*exact)(double);
  double low, high;
};
std::ostream& operator<<(std::ostream& os, const Row& row) { return os << row.name; }

class MathTest : public testing::TestWithParam<Row> {};

TEST_P(MathTest, IsWithinAFewUnitsInTheLastPlace) {
  const Row& row = GetParam();
  double worst = 0, at = 0;
  for (int i = 0; i <= 400000; i++) {
    const auto x = static_cast<float>(row.low + (row.high - row.low) * i / 400000);
    const double exact = row.exact(x), error = std::abs(row.fast(x) - exact) / std::max(std::abs(exact), 1e-37);
    if (!(error <= worst)) worst = error, at = x;
  }
  EXPECT_LE(worst, 4e-7) << "at " << at;
}

TEST_P(MathTest, KeepsNotANumber) { EXPECT_TRUE(std::isnan(GetParam().fast(NAN))); }

const Row kRows[] = {
    {"Exp", gopt_exp, std::exp, -87, 88.7},  {"ExpNearZero", gopt_exp, std::exp, -1e-3, 1e-3},
    {"Tanh", gopt_tanh, std::tanh, -12, 12}, {"TanhNearZero", gopt_tanh, std::tanh, -1e-3, 1e-3},
    {"Erf", gopt_erf, std::erf, -5, 5},      {"ErfNearZero", gopt_erf, std::erf, -1e-3, 1e-3},
};
INSTANTIATE_TEST_SUITE_P(Functions, MathTest, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Math, EndsOfTheRange) {
  EXPECT_EQ(gopt_exp(-INFINITY), 0.0f);
  EXPECT_EQ(gopt_exp(INFINITY), INFINITY);
  EXPECT_EQ(gopt_exp(100.0f), INFINITY);
  EXPECT_EQ(gopt_exp(-200.0f), 0.0f);
  EXPECT_EQ(gopt_tanh(INFINITY), 1.0f);
  EXPECT_EQ(gopt_tanh(-INFINITY), -1.0f);
  EXPECT_EQ(gopt_erf(INFINITY), 1.0f);
  EXPECT_EQ(gopt_erf(-INFINITY), -1.0f);
  EXPECT_EQ(gopt_exp(0.0f), 1.0f);
}

TEST(Math, Integers) {
  EXPECT_EQ(gopt_floor_div(-7, 2), -4);
  EXPECT_EQ(gopt_ceil_div(-7, 2), -3);
  EXPECT_EQ(gopt_ceil_div(7, 2), 4);
  EXPECT_EQ(gopt_divide(-7, 2), -3);
  EXPECT_EQ(gopt_divide(1, 0), 0);
  EXPECT_EQ(gopt_divide(INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(gopt_clamp(-3, 5), 0);
  EXPECT_EQ(gopt_clamp(9, 5), 4);
  EXPECT_EQ(gopt_to_int(NAN), 0);
  EXPECT_EQ(gopt_to_int(1e30), INT64_MAX);
}

}  // namespace
