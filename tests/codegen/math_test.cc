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
    if (!(error <= worst)) worst = error, at = x;
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
    {"ExpLargest", gopt_exp, std::exp, 88.3, 88.72},
    {"Tanh", gopt_tanh, std::tanh, -12, 12},
    {"TanhNearZero", gopt_tanh, std::tanh, -1e-3, 1e-3},
    {"Erf", gopt_erf, std::erf, -5, 5},
    {"ErfNearZero", gopt_erf, std::erf, -1e-3, 1e-3},
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
