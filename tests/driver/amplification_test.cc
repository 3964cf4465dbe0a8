// What a model makes of its own roundings is no fault of the code; anything beyond it is.
#include "../../driver/amplification.h"

#include <gtest/gtest.h>

#include <cmath>

#include "../../driver/check.h"
#include "../../driver/check_inputs.h"
#include "../support/graph_with_weights.h"
#include "gopt/row_function.h"

namespace gopt::driver {
namespace {

// 64 x, rounds times: each time through a sine, so that nothing grows; a last digit becomes a first one.
std::string doubled(const std::string& from, const std::string& name) {
  std::string text, last = from;
  for (int k = 0; k < 6; k++) {
    const std::string own = name + std::to_string(k);
    text.append("  ").append(own).append(" = Add(").append(last).append(", ").append(last).append(")\n");
    last = own;
  }
  return text;
}
Graph chaotic(int rounds) {
  std::string text = "  input x : f32[64]\n", last = "x";
  for (int round = 0; round < rounds; round++) {
    const std::string own = "r" + std::to_string(round);
    text += doubled(last, own + "d") + "  " + own + " = Sin(" + own + "d5)\n";
    last = own;
  }
  return graph_with_weights(text + "  output y = " + last + "\n");
}

TEST(Amplification, CodeOfAModelThatIsChaoticIsNotRefused) {
  const DriverOptions options;
  const CostSource costs;
  PlannedGraph graph(chaotic(6), options.target, costs);
  const auto report = check_code(graph, options, 100);
  ASSERT_TRUE(report && report->checked) << (report ? report->why_not : "none");
  EXPECT_TRUE(report->passed);
  EXPECT_NE(report->amplified, "");
  EXPECT_TRUE(must_agree(*report).ok());
}

TEST(Amplification, OfAModelThatIsNotNothingIsSaid) {
  const DriverOptions options;
  const CostSource costs;
  PlannedGraph graph(chaotic(1), options.target, costs);
  const auto report = check_code(graph, options, 100);
  ASSERT_TRUE(report && report->checked);
  EXPECT_TRUE(report->passed);
  EXPECT_EQ(report->amplified, "");
}

// Outputs that are `wrong` by one in so many elements, of a model that rounds 2^18 x to integers: few of them move.
struct Rounded {
  const char* name;
  size_t wrong;
  double by;
  bool passes;
};
void PrintTo(const Rounded& row, std::ostream* out) { *out << row.name; }

class RoundedOutputs : public testing::TestWithParam<Rounded> {};

TEST_P(RoundedOutputs, MayDifferAsFarAsTheyMoveByThemselves) {
  const Graph graph = graph_with_weights("  input x : f32[4096]\n" + doubled("x", "a") + doubled("a5", "b") +
                                         doubled("b5", "c") + "  z = Floor(c5)\n  output y = z\n");
  const auto inputs = draw_inputs(graph, 3);
  ASSERT_TRUE(inputs.ok());
  const GraphRunner reference{graph};
  const auto expected = reference.run(*inputs);
  ASSERT_TRUE(expected.ok());
  std::vector<double> values = (*expected)[0].to_doubles();
  const Tolerance tolerance{.relative = 0, .absolute = 0};
  for (size_t k = 0; k < GetParam().wrong; k++) values[k] += GetParam().by;
  const std::vector<Tensor> found = {Tensor::from_values<double>(ElementType::Float32, {4096}, values)};
  CheckReport report;
  add_draw(report, graph, InputKind::Ordinary, *expected, found, tolerance);
  EXPECT_EQ(report.passed, GetParam().wrong == 0);
  const Status status =
      allow_for_amplification(report, reference, *inputs, *expected, found, tolerance, Precision::Fp32, 5);
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(report.passed, GetParam().passes);
}

INSTANTIATE_TEST_SUITE_P(All, RoundedOutputs,
                         testing::Values(Rounded{"None", 0, 1, true}, Rounded{"Few", 20, 1, true},
                                         Rounded{"All", 4096, 1, false}, Rounded{"OneByMuch", 1, 1000, false},
                                         Rounded{"OneIsNoNumber", 1, NAN, false}),
                         [](const auto& row) { return std::string(row.param.name); });

// Scores that are all 1, or as their inputs are: of the former any are the largest, up to a rounding.
class LargestScores : public testing::TestWithParam<bool> {};

TEST_P(LargestScores, MayBeOthersWhereScoresAreSaturated) {
  const bool is_saturated = GetParam();
  GraphBuilder builder;
  const Value x = builder.input("x", {ElementType::Float32, Shape{Index(1), Index(512)}});
  const Value high =
      builder.constant(Tensor::from_values<double>(ElementType::Float32, {}, {is_saturated ? 60.0 : 0.0}));
  const auto sum = builder.apply(OpKind::Add, {x, high});
  ASSERT_TRUE(sum.ok());
  const auto scores = builder.apply(OpKind::Sigmoid, {*sum});
  ASSERT_TRUE(scores.ok());
  auto op = std::make_shared<OpaqueOp>();
  op->row_function = std::make_shared<const RowFunction>(RowFunction{.kind = RowFunction::Kind::Top, .axis = 1});
  const Shape taken{Index(1), Index(5)};
  const NodePtr top =
      builder.opaque(std::move(op), {*scores}, {{ElementType::Float32, taken}, {ElementType::Int64, taken}});
  builder.output("places", {top, 1});
  const Graph graph = builder.build();
  const auto inputs = draw_inputs(graph, 3);
  ASSERT_TRUE(inputs.ok());
  const GraphRunner reference{graph};
  const auto expected = reference.run(*inputs);
  ASSERT_TRUE(expected.ok());
  std::vector<int64_t> places = (*expected)[0].to_ints();
  for (int64_t& place : places) place = (place + 200) % 512;
  const std::vector<Tensor> found = {Tensor::from_values<int64_t>(ElementType::Int64, {1, 5}, places)};
  CheckReport report;
  add_draw(report, graph, InputKind::Ordinary, *expected, found, {});
  EXPECT_FALSE(report.passed);
  const Status status = allow_for_amplification(report, reference, *inputs, *expected, found, {}, Precision::Fp32, 5);
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(report.passed, is_saturated);
}

INSTANTIATE_TEST_SUITE_P(All, LargestScores, testing::Bool());

}  // namespace
}  // namespace gopt::driver
