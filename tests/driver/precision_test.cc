// Whole optimizations for the CPU in each precision: what is emitted computes what the original does, as far as the
// precision goes, and how far is said.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "../optimizer/random_graph.h"
#include "../support/graph_with_weights.h"
#include "../support/test_folder.h"
#include "gopt/driver.h"
#include "gopt/rule.h"

namespace gopt {
namespace {

DriverOptions options_in(Precision precision) {
  DriverOptions options;
  options.target.precision = precision;
  options.search.max_steps = 30;
  options.wants_code = true;
  options.runs = 3;
  return options;
}

double error_of(const Outcome& outcome) {
  double error = 0;
  for (const Difference& d : outcome.code_check->differences) error = std::max(error, d.max_relative);
  return error;
}

TEST(DriverPrecision, DrawnGraphsAgreeWithTheirOriginals) {
  const auto rules = load_rules(GOPT_SHIPPED_RULES "/core.rules");
  ASSERT_TRUE(rules.ok());
  std::mt19937_64 random(29);
  constexpr int kGraphs = 4, kOperators = 10;
  for (int k = 0; k < kGraphs; k++) {
    const Graph graph = random_graph(random, kOperators);
    for (const Precision precision : {Precision::Bf16, Precision::Bf16x3}) {
      const auto outcome = optimize_graph(graph, rules->rules, options_in(precision));
      ASSERT_TRUE(outcome.ok()) << to_string(precision) << ": " << outcome.error().message;
      ASSERT_TRUE(outcome->code_check && outcome->code_check->checked) << outcome->latency_note;
      EXPECT_EQ(outcome->plan->target.precision, precision);
      EXPECT_LE(error_of(*outcome), precision == Precision::Bf16 ? 0.2 : 1e-3) << k;
    }
  }
}

// The error that is said is that of the operands' digits: some in bf16, none to speak of in parts and in fp32.
TEST(DriverPrecision, TheErrorIsMeasured) {
  const Graph graph = graph_with_weights(
      "input x : f32[64,96]\ninput w : f32[96,128]\ninput w2 : f32[128,40]\na = MatMul(x, w)\nb = Relu(a)\n"
      "c = MatMul(b, w2)\noutput y = c");
  std::map<Precision, double> errors;
  for (const Precision precision : precisions_of(TargetKind::Cpu)) {
    const auto outcome = optimize_graph(graph, {}, options_in(precision));
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    ASSERT_TRUE(outcome->code_check && outcome->code_check->checked);
    errors[precision] = error_of(*outcome);
  }
  EXPECT_LE(errors[Precision::Fp32], 1e-5);
  EXPECT_LE(errors[Precision::Bf16x3], 2e-5);
  EXPECT_GE(errors[Precision::Bf16], 1e-4);
  EXPECT_LE(errors[Precision::Bf16], 2e-2);
}

// y = x w - x (1 - d) w: what is left has 1 / d times the products' error.
Graph difference_of_products(double d) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  std::vector<double> values(256 * 256);
  for (double& v : values) v = normal(random);
  size_t next = 0;
  return graph_with_weights(
      "input x : f32[256,256]\ninput w : f32[256,256]\ninput w2 : f32[256,256]\na = MatMul(x, w)\n"
      "b = MatMul(x, w2)\nc = Sub(a, b)\noutput y = c",
      [&] {
        const double scale = next < values.size() ? 1 : 1 - d;
        return scale * values[next++ % values.size()];
      });
}

// Where kernels of two terms are the fastest (AMX).
TEST(DriverPrecision, SumsOfTwoLoseNoMoreOverANetworkThanIsSaid) {
  const TestFolder folder;
  DriverOptions options = options_in(Precision::Bf16x3);
  options.measured_costs = true;
  options.cache = folder.file("times");
  options.target.threads = 2;
  const auto plain = optimize_graph(difference_of_products(1), {}, options);
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  if (std::ranges::none_of(plain->plan->kernels, is_of_two_terms)) GTEST_SKIP() << "other kernels are faster here";
  EXPECT_LE(error_of(*plain), 2e-5);
  EXPECT_TRUE(plain->latency_note.empty()) << plain->latency_note;
  const auto outcome = optimize_graph(difference_of_products(0.1), {}, options);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_LE(error_of(*outcome), 2e-5);
  EXPECT_TRUE(std::ranges::none_of(outcome->plan->kernels, is_of_two_terms)) << print_plan(*outcome->plan);
  EXPECT_NE(outcome->latency_note.find("compute in floats"), std::string::npos);
  // Beyond what the check lets pass, too: of floats as much is left as they make.
  const auto most = optimize_graph(difference_of_products(3e-3), {}, options);
  ASSERT_TRUE(most.ok()) << most.error().message;
  EXPECT_TRUE(std::ranges::none_of(most->plan->kernels, is_of_two_terms)) << print_plan(*most->plan);
}

}  // namespace
}  // namespace gopt
