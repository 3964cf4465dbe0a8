// How far outputs may be apart, by what their type holds.
#include <gtest/gtest.h>

#include "../../driver/quantization_step.h"
#include "gopt/compare.h"
#include "gopt/text.h"

namespace gopt {
namespace {

struct Row {
  const char* name;
  ElementType type;
  double factor;  // of the other output to the reference
  bool passes;
};
std::ostream& operator<<(std::ostream& os, const Row& row) { return os << row.name; }

class DifferenceTest : public testing::TestWithParam<Row> {};

TEST_P(DifferenceTest, IsMeasuredInDigitsOfTheType) {
  const Row& row = GetParam();
  const Tensor reference = Tensor::from_values<double>(row.type, {2}, {100, -3});
  const Tensor other = Tensor::from_values<double>(row.type, {2}, {100 * row.factor, -3});
  EXPECT_EQ(difference("y", reference, other, Tolerance()).passed, row.passes);
}

const Row kRows[] = {{"FloatsOfFewDigits", ElementType::Float32, 1.005, false},
                     {"FloatsNearby", ElementType::Float32, 1.00005, true},
                     {"HalvesNearby", ElementType::Float16, 1.005, true},
                     {"HalvesApart", ElementType::Float16, 1.03, false},
                     {"BrainFloatsNearby", ElementType::BFloat16, 1.03, true},
                     {"BrainFloatsApart", ElementType::BFloat16, 1.1, false},
                     {"Integers", ElementType::Int32, 1.01, false}};
INSTANTIATE_TEST_SUITE_P(Types, DifferenceTest, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

// As doubles the two are one number.
TEST(Difference, IntegersBeyond53BitsDifferByOne) {
  constexpr int64_t kWide = int64_t{1} << 60;
  const auto tensor = [](int64_t value) { return Tensor::from_values<int64_t>(ElementType::Int64, {1}, {value}); };
  EXPECT_FALSE(difference("y", tensor(kWide), tensor(kWide + 1), Tolerance()).passed);
  EXPECT_TRUE(difference("y", tensor(kWide), tensor(kWide), Tolerance()).passed);
}

// Of a model whose inputs and outputs are floats and whose inside is not. What is given in 16 bits and computed in 32
// is compared as floats are.
TEST(ToleranceOfOutput, IsThatOfTheTypeItIsComputedIn) {
  const auto graph = parse_graph(
      "graph g\n  input x : f32[4]\n  a = Cast(x) {to=10}\n  b = Mul(a, a)\n  c = Cast(b) {to=1}\n  d = Neg(x)\n"
      "  e = Cast(d) {to=16}\n  f = Cast(e) {to=1}\n  input h : f16[4]\n  i = Transpose(h) {perm=[0]}\n"
      "  j = Cast(i) {to=1}\n  k = Mul(j, x)\n  output y = c\n  output z = d\n  output w = f\n  output v = k\nend");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto relative = [&](size_t output) {
    return driver::tolerance_of_output(graph->outputs()[output].value, {}).relative;
  };
  EXPECT_EQ(relative(0), rounding_tolerance(ElementType::Float16));
  EXPECT_EQ(relative(1), Tolerance().relative);
  EXPECT_EQ(relative(2), 8e-3);
  EXPECT_EQ(relative(3), Tolerance().relative);
}

}  // namespace
}  // namespace gopt
