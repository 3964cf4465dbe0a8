// The functions that are printed beside generated loops, against libm.
#include <gtest/gtest.h>

#include <cmath>

#include "gopt/type.h"
#include "gopt_half.h"
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
    ASSERT_FALSE(std::isnan(error)) << "at " << x;
    if (error > worst) worst = error, at = x;
  }
  EXPECT_LE(worst, 4e-7) << "at " << at;
}

TEST_P(MathTest, KeepsNotANumber) {
  for (const uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7fffffffu, 0xffffffffu, 0x7fc00055u}) {
    float x;
    memcpy(&x, &bits, sizeof x);
    EXPECT_TRUE(std::isnan(GetParam().fast(x))) << std::hex << bits;
  }
}

const Row kRows[] = {
    {"Exp", gopt_exp, std::exp, -87, 88.7},
    {"ExpNearZero", gopt_exp, std::exp, -1e-3, 1e-3},
    {"ExpSmallest", gopt_exp, std::exp, -87.33, -86.9},
    {"ExpLargest", gopt_exp, std::exp, 88.3, 88.72283},
    {"Tanh", gopt_tanh, std::tanh, -12, 12},
    {"TanhNearZero", gopt_tanh, std::tanh, -1e-3, 1e-3},
    {"Erf", gopt_erf, std::erf, -5, 5},
    {"ErfNearZero", gopt_erf, std::erf, -1e-3, 1e-3},
    {"Log", gopt_log, std::log, 1e-3, 20},
    {"LogNearOne", gopt_log, std::log, 0.999, 1.001},
    {"LogOfLarge", gopt_log, std::log, 1e30, 3.4e38},
    {"LogBelowNormal", gopt_log, std::log, 1e-40, 1e-37},
    {"Log1p", gopt_log1p, std::log1p, -0.99, 20},
    {"Log1pNearZero", gopt_log1p, std::log1p, -1e-6, 1e-6},
    {"Log1pOfTiny", gopt_log1p, std::log1p, 1e-30, 1e-12},
    {"Sin", gopt_sin, std::sin, -100, 100},
    {"SinNearZero", gopt_sin, std::sin, -1e-3, 1e-3},
    {"SinNearTurns", gopt_sin, std::sin, 710.0, 710.001},
    {"SinOfLarge", gopt_sin, std::sin, -1e9, 1e9},
    {"SinOfVeryLarge", gopt_sin, std::sin, 1e30, 3.4e38},
    {"Cos", gopt_cos, std::cos, -100, 100},
    {"CosOfLarge", gopt_cos, std::cos, -1e15, 1e15},
    {"CosOfVeryLarge", gopt_cos, std::cos, -3.4e38, 3.4e38},
    {"Tan", gopt_tan, std::tan, -100, 100},
    {"TanOfLarge", gopt_tan, std::tan, 1e10, 1e20},
    {"Atan", gopt_atan, std::atan, -10, 10},
    {"AtanNearZero", gopt_atan, std::atan, -1e-3, 1e-3},
    {"AtanOfLarge", gopt_atan, std::atan, 1e3, 1e38},
    {"Asin", gopt_asin, std::asin, -1, 1},
    {"AsinNearZero", gopt_asin, std::asin, -1e-3, 1e-3},
    {"Acos", gopt_acos, std::acos, -1, 0.9999},
    {"AcosNearOne", gopt_acos, std::acos, 0.9999, 1},
};
INSTANTIATE_TEST_SUITE_P(Functions, MathTest, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Math, EndsOfTheRange) {
  EXPECT_EQ(gopt_exp(-INFINITY), 0.0f);
  EXPECT_EQ(gopt_exp(INFINITY), INFINITY);
  EXPECT_EQ(gopt_exp(88.7228394f), INFINITY);
  EXPECT_EQ(gopt_exp(100.0f), INFINITY);
  EXPECT_EQ(gopt_exp(-200.0f), 0.0f);
  EXPECT_EQ(gopt_tanh(INFINITY), 1.0f);
  EXPECT_EQ(gopt_tanh(-INFINITY), -1.0f);
  EXPECT_EQ(gopt_erf(INFINITY), 1.0f);
  EXPECT_EQ(gopt_erf(-INFINITY), -1.0f);
  EXPECT_EQ(gopt_exp(0.0f), 1.0f);
  EXPECT_EQ(gopt_log(0.0f), -INFINITY);
  EXPECT_EQ(gopt_log(-0.0f), -INFINITY);
  EXPECT_EQ(gopt_log(INFINITY), INFINITY);
  EXPECT_EQ(gopt_log(1.0f), 0.0f);
  EXPECT_TRUE(std::isnan(gopt_log(-1e-40f)));
  EXPECT_TRUE(std::isnan(gopt_log(-INFINITY)));
  EXPECT_EQ(gopt_log1p(-1.0f), -INFINITY);
  EXPECT_TRUE(std::signbit(gopt_log1p(-0.0f)));
  EXPECT_EQ(gopt_log1p(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(gopt_log1p(-1.5f)));
  EXPECT_TRUE(std::isnan(gopt_sin(INFINITY)));
  EXPECT_TRUE(std::isnan(gopt_cos(-INFINITY)));
  EXPECT_TRUE(std::isnan(gopt_tan(INFINITY)));
  EXPECT_EQ(gopt_cos(0.0f), 1.0f);
  EXPECT_TRUE(std::signbit(gopt_sin(-0.0f)));
  EXPECT_EQ(gopt_atan(INFINITY), std::atan(INFINITY));
  EXPECT_EQ(gopt_atan(-INFINITY), std::atan(-INFINITY));
  EXPECT_TRUE(std::isnan(gopt_asin(1.0000001f)));
  EXPECT_TRUE(std::isnan(gopt_acos(-1.0000001f)));
}

// Where it is exact, libm's power of doubles is what is expected, among them what the standard says of zeros, infinite
// numbers and none.
TEST(Math, PowersOfAllKinds) {
  std::vector<float> numbers{0.0f, -0.0f, 1.0f,   -1.0f,   INFINITY, -INFINITY,  NAN,     2.0f, -2.0f, 0.5f,   -0.5f,
                             3.0f, -3.0f, 1e-45f, -1e-45f, 3.4e38f,  8388609.0f, -1.7e7f, 1.5f, -2.5f, 1e-30f, 0.3333f};
  uint32_t state = 12345;
  for (int i = 0; i < 1500; i++) {
    state = state * 1664525 + 1013904223;
    const float any = gopt_float_of(state);
    numbers.push_back(i % 2 ? any : static_cast<float>(static_cast<int32_t>(state >> 8) % 4001 - 2000) / 64);
  }
  for (const float x : numbers)
    for (const float y : numbers) {
      const double exact = std::pow(static_cast<double>(x), static_cast<double>(y));
      const float got = gopt_pow(x, y), rounded = static_cast<float>(exact);
      if (std::isnan(exact)) {
        ASSERT_TRUE(std::isnan(got)) << x << " ^ " << y;
      } else if (std::isinf(rounded) || rounded == 0) {
        ASSERT_EQ(got, rounded) << x << " ^ " << y;
        ASSERT_EQ(std::signbit(got), std::signbit(rounded)) << x << " ^ " << y;
      } else {
        ASSERT_LE(std::abs(got - exact), 1.2e-7 * std::abs(exact) + 1e-45) << x << " ^ " << y;
      }
    }
}

template <class Narrow>
void expect_tensors_rounding(gopt::ElementType type) {
  std::vector<double> doubles;
  std::vector<float> floats;
  for (uint32_t bits = 0; bits < 65536; bits++) {
    Narrow narrow;
    narrow.bits = static_cast<uint16_t>(bits);
    const auto exact = static_cast<float>(narrow);
    if (!std::isnan(exact)) {
      EXPECT_EQ(Narrow(exact).bits, bits);
    }
    for (const double factor : {1.0, 1 + 0x1p-9, 1 + 0x1p-12, 1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-40})
      doubles.push_back(exact * factor);
  }
  for (const double value : doubles) floats.push_back(static_cast<float>(value));
  const std::vector<double> of_doubles =
      gopt::Tensor::from_values(type, {static_cast<int64_t>(doubles.size())}, doubles).to_doubles();
  const std::vector<double> of_floats = gopt::Tensor::from_values(type, {static_cast<int64_t>(floats.size())},
                                                                  std::vector<double>(floats.begin(), floats.end()))
                                            .to_doubles();
  for (size_t i = 0; i < doubles.size(); i++) {
    if (std::isnan(doubles[i])) continue;
    EXPECT_EQ(static_cast<float>(Narrow(doubles[i])), of_doubles[i]) << doubles[i];
    EXPECT_EQ(static_cast<float>(Narrow(floats[i])), of_floats[i]) << floats[i];
  }
}

TEST(Math, HalvesAreRoundedAsTensorsAre) { expect_tensors_rounding<gopt_half>(gopt::ElementType::Float16); }
TEST(Math, BrainFloatsAreRoundedAsTensorsAre) { expect_tensors_rounding<gopt_bfloat16>(gopt::ElementType::BFloat16); }
TEST(Math, HalvesKeepNotANumber) {
  EXPECT_TRUE(std::isnan(static_cast<float>(gopt_half(NAN))));
  EXPECT_TRUE(std::isnan(static_cast<float>(gopt_bfloat16(NAN))));
  EXPECT_TRUE(std::isnan(static_cast<float>(gopt_half(static_cast<double>(NAN)))));
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
