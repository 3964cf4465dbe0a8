// Element conversions: rounding of narrow floats, wrapping of integers, and what identifies a tensor.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "gopt/type.h"

namespace gopt {
namespace {

uint16_t stored_bits(ElementType type, double value) {
  uint16_t bits = 0;
  store_double(reinterpret_cast<std::byte*>(&bits), type, 0, value);
  return bits;
}
double loaded(ElementType type, uint16_t bits) {
  return load_double(reinterpret_cast<const std::byte*>(&bits), type, 0);
}

struct RoundingRow {
  const char* name;
  ElementType type;
  double value;
  uint16_t bits;
};
std::ostream& operator<<(std::ostream& os, const RoundingRow& row) { return os << row.name; }

class RoundingTest : public testing::TestWithParam<RoundingRow> {};
TEST_P(RoundingTest, RoundsToNearestEven) {
  EXPECT_EQ(stored_bits(GetParam().type, GetParam().value), GetParam().bits);
}

constexpr ElementType kHalf = ElementType::Float16, kBrain = ElementType::BFloat16;
const RoundingRow kRoundingRows[] = {
    {"HalfOne", kHalf, 1, 0x3c00},
    {"HalfMinusTwo", kHalf, -2, 0xc000},
    {"HalfNegativeZero", kHalf, -0.0, 0x8000},
    {"HalfTieDown", kHalf, 1 + 0x1p-11, 0x3c00},
    {"HalfTieUp", kHalf, 1 + 3 * 0x1p-11, 0x3c02},
    {"HalfAboveTie", kHalf, 1 + 0x1p-11 + 0x1p-30, 0x3c01},
    {"HalfLargest", kHalf, 65504, 0x7bff},
    {"HalfBelowOverflow", kHalf, 65519.99, 0x7bff},
    {"HalfOverflow", kHalf, 65520, 0x7c00},
    {"HalfNegativeOverflow", kHalf, -1e9, 0xfc00},
    {"HalfInfinity", kHalf, INFINITY, 0x7c00},
    {"HalfNaN", kHalf, NAN, 0x7e00},
    {"HalfSmallestNormal", kHalf, 0x1p-14, 0x0400},
    {"HalfSubnormal", kHalf, 0x1p-24, 0x0001},
    {"HalfSubnormalTieToZero", kHalf, 0x1p-25, 0x0000},
    {"HalfSubnormalTieUp", kHalf, 3 * 0x1p-25, 0x0002},
    {"HalfSubnormalCarries", kHalf, 0x1p-14 - 0x1p-26, 0x0400},
    {"HalfMantissaCarries", kHalf, 2 - 0x1p-12, 0x4000},
    {"BrainOne", kBrain, 1, 0x3f80},
    {"BrainTieDown", kBrain, 1 + 0x1p-8, 0x3f80},
    {"BrainTieUp", kBrain, 1 + 3 * 0x1p-8, 0x3f82},
    {"BrainOverflow", kBrain, 3.4e38, 0x7f80},
    {"BrainNaN", kBrain, NAN, 0x7fc0},
    {"BrainSubnormal", kBrain, 0x1p-133, 0x0001},
    {"BrainNegativeZero", kBrain, -0.0, 0x8000},
};
INSTANTIATE_TEST_SUITE_P(Tensor, RoundingTest, testing::ValuesIn(kRoundingRows),
                         [](const auto& info) { return info.param.name; });

TEST(Tensor, NarrowFloatsComeBackBitForBit) {
  for (ElementType type : {kHalf, kBrain}) {
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
      const double value = loaded(type, static_cast<uint16_t>(bits));
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(loaded(type, stored_bits(type, value))));
      } else {
        EXPECT_EQ(stored_bits(type, value), bits) << to_string(type);
      }
    }
  }
}

TEST(Tensor, HalfRoundsToTheNearestOfAllHalves) {
  for (uint16_t bits = 0; bits < 0x7bff; bits++) {
    const double low = loaded(kHalf, bits), high = loaded(kHalf, static_cast<uint16_t>(bits + 1)),
                 middle = (low + high) / 2;
    EXPECT_EQ(stored_bits(kHalf, std::nextafter(middle, low)), bits);
    EXPECT_EQ(stored_bits(kHalf, std::nextafter(middle, high)), bits + 1);
    EXPECT_EQ(stored_bits(kHalf, middle), bits % 2 == 0 ? bits : bits + 1);
  }
}

// A float that rounds through single precision first would be rounded twice.
TEST(Tensor, BrainFloatRoundsOnce) { EXPECT_EQ(stored_bits(kBrain, 1 + 0x1p-8 + 0x1p-40), 0x3f81); }

template <class T>
T stored(ElementType type, double value) {
  T result{};
  store_double(reinterpret_cast<std::byte*>(&result), type, 0, value);
  return result;
}

TEST(Tensor, FloatsTruncateAndWrapIntoIntegers) {
  EXPECT_EQ(stored<int8_t>(ElementType::Int8, -1.9), -1);
  EXPECT_EQ(stored<int8_t>(ElementType::Int8, 200), -56);
  EXPECT_EQ(stored<uint8_t>(ElementType::UInt8, 257), 1);
  EXPECT_EQ(stored<uint8_t>(ElementType::UInt8, -1), 255);
  EXPECT_EQ(stored<int32_t>(ElementType::Int32, 4294967296.0 + 5), 5);
  EXPECT_EQ(stored<int64_t>(ElementType::Int64, 1e300), INT64_MAX);
  EXPECT_EQ(stored<int64_t>(ElementType::Int64, -INFINITY), INT64_MIN);
  EXPECT_EQ(stored<int64_t>(ElementType::Int64, NAN), 0);
  EXPECT_EQ(stored<uint64_t>(ElementType::UInt64, 18446744073709549568.0), 18446744073709549568u);
  EXPECT_EQ(stored<uint8_t>(ElementType::Bool, 0.5), 1);
  EXPECT_EQ(stored<uint8_t>(ElementType::Bool, -0.0), 0);
}

TEST(Tensor, IntegersWrap) {
  int8_t narrow = 0;
  store_int(reinterpret_cast<std::byte*>(&narrow), ElementType::Int8, 0, 300);
  EXPECT_EQ(narrow, 44);
  uint8_t flag = 0;
  store_int(reinterpret_cast<std::byte*>(&flag), ElementType::Bool, 0, 256);
  EXPECT_EQ(flag, 1);
  const int64_t big = (int64_t{1} << 53) + 1;  // no double holds it
  int64_t wide = 0;
  store_int(reinterpret_cast<std::byte*>(&wide), ElementType::Int64, 0, big);
  EXPECT_EQ(load_int(reinterpret_cast<const std::byte*>(&wide), ElementType::Int64, 0), big);
}

TEST(Tensor, ElementTypesPrintAndParse) {
  for (int i = 1; i <= 22; i++) {
    const auto type = static_cast<ElementType>(i);
    EXPECT_EQ(parse_element_type(to_string(type)), type) << i;
  }
  EXPECT_EQ(parse_element_type("float"), std::nullopt);
}

TEST(Tensor, ContentIdSaysWhetherContentsAreEqual) {
  const Tensor a = Tensor::vector_i64({1, 2, 3, 4}), b = Tensor::vector_i64({1, 2, 3, 4});
  EXPECT_EQ(a.content_id(), b.content_id());
  EXPECT_NE(a.content_id(), Tensor::vector_i64({1, 2, 3, 5}).content_id());
  EXPECT_NE(a.content_id(), a.reshaped({2, 2}).content_id());
  EXPECT_EQ(a.reshaped({2, 2}).content_id(), b.reshaped({2, 2}).content_id());
  const Tensor as_doubles = Tensor::from_bytes(ElementType::Float64, {4}, {a.bytes().begin(), a.bytes().end()});
  EXPECT_NE(a.content_id(), as_doubles.content_id());
  const Tensor zero = Tensor::scalar_f32(0.0F), negative_zero = Tensor::scalar_f32(-0.0F);
  EXPECT_NE(zero.content_id(), negative_zero.content_id());
}

TEST(Tensor, LargeTensorsAreIdentifiedByWhereTheyLie) {
  const std::vector<double> zeros(100'000, 0.0);
  const Tensor a = Tensor::from_values(ElementType::Float32, {100'000}, zeros);
  const Tensor b = Tensor::from_values(ElementType::Float32, {100'000}, zeros), copy = a;
  EXPECT_EQ(a.content_id(), copy.content_id());
  EXPECT_NE(a.content_id(), b.content_id());
}

TEST(TensorType, PrintsStaticSymbolicAndUnknownShapes) {
  EXPECT_EQ(to_string(TensorType{ElementType::Float32, Shape{1, symbol("h")}}), "f32[1,h]");
  EXPECT_EQ(to_string(TensorType{ElementType::Int64, std::nullopt}), "i64[?]");
  EXPECT_FALSE((TensorType{ElementType::Float32, Shape{symbol("h")}}).has_static_shape());
  EXPECT_FALSE((TensorType{ElementType::Float32, std::nullopt}).has_static_shape());
  const std::vector<int64_t> dims{2, 3};
  EXPECT_EQ((TensorType{ElementType::Float32, Shape{2, 3}}).static_shape(), dims);
}

TEST(TensorType, AnElementCountBeyond64BitsIsAnError) {
  const std::vector<int64_t> dims{int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_THROW(element_count(dims), std::overflow_error);
}

}  // namespace
}  // namespace gopt
