// Whole optimizations for the CPU in each precision: what is emitted computes what the original does, as far as the
// precision goes, and how far is said.
#include <gtest/gtest.h>

#include <random>

#include "../optimizer/random_graph.h"
#include "../support/graph_with_weights.h"
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

}  // namespace
}  // namespace gopt
