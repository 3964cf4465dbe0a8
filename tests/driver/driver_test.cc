// One optimization as a value: what comes out is one choice, and nothing is printed on the way.
#include "gopt/driver.h"

#include <gtest/gtest.h>

#include "gopt/codegen.h"
#include "gopt/kernel_costs.h"
#include "gopt/rule.h"
#include "gopt/text.h"

namespace gopt {
namespace {

Graph graph_of(const std::string& text) {
  auto graph = parse_graph("graph g\n" + text + "\nend");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return *graph;
}

// Two products of one input, added: one product of the sum of the weights is less work.
Graph two_products() {
  return graph_of(
      "input x : f32[64,96]\ninput u : f32[96,128]\ninput v : f32[96,128]\np = MatMul(x, u)\nq "
      "= MatMul(x, v)\ns = Add(p, q)\nr = Relu(s)\noutput y = r");
}

const std::vector<RewriteRule>& core_rules() {
  static const std::vector<RewriteRule> rules = [] {
    auto database = load_rules(GOPT_SHIPPED_RULES "/core.rules");
    EXPECT_TRUE(database.ok()) << (database.ok() ? "" : database.error().message);
    return database->rules;
  }();
  return rules;
}

DriverOptions options_for_code() {
  DriverOptions options;
  options.search.max_steps = 50;
  options.search.allowed_marks.finite_only = true;  // the distributive law
  options.wants_code = true;
  options.runs = 5;
  return options;
}

TEST(Driver, ThePlanThatWasTimedIsThePlanThatIsEmitted) {
  DriverOptions options = options_for_code();
  const auto outcome = optimize_graph(two_products(), core_rules(), options);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  ASSERT_TRUE(outcome->latency) << outcome->latency_note;
  ASSERT_TRUE(outcome->plan);
  if (outcome->latency_note.empty()) {
    EXPECT_FALSE(outcome->result.applied.empty());
    EXPECT_EQ(outcome->latency->plan, print_plan(*outcome->plan));
  } else {
    EXPECT_TRUE(outcome->result.graph.same_as(two_products()));
    EXPECT_NE(outcome->latency->plan, print_plan(*outcome->plan));
  }
  EXPECT_EQ(outcome->plan->graph.hash(), outcome->result.graph.hash());
}

TEST(Driver, ResultAndTraceAreOfOneGraph) {
  DriverOptions options = options_for_code();
  options.times_code = false;
  const auto outcome = optimize_graph(two_products(), core_rules(), options);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_FALSE(outcome->result.applied.empty());
  EXPECT_FALSE(outcome->latency);
  EXPECT_TRUE(outcome->check.passed);
  EXPECT_LT(outcome->result.after.operations, outcome->result.before.operations);
  ASSERT_TRUE(outcome->plan);
  EXPECT_EQ(outcome->plan->graph.hash(), outcome->result.graph.hash());
  for (const AppliedRule& applied : outcome->result.applied) EXPECT_TRUE(outcome->proofs.contains(applied.rule));
}

TEST(Driver, WhatCannotBeWrittenIsNotKept) {
  DriverOptions options = options_for_code();
  options.is_writable = [](const Graph&) -> Status { return Error{"no operator for that"}; };
  const auto outcome = optimize_graph(two_products(), core_rules(), options);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_TRUE(outcome->result.applied.empty());
  EXPECT_EQ(outcome->result.graph.hash(), two_products().hash());
  EXPECT_EQ(outcome->plan->graph.hash(), two_products().hash());
  ASSERT_EQ(outcome->notes.size(), 1U);
  EXPECT_EQ(outcome->notes[0], "no operator for that; the unrewritten model is kept");
}

TEST(Driver, PrintsNothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto outcome = optimize_graph(two_products(), core_rules(), options_for_code());
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(outcome.ok());
}

TEST(Driver, WhatCannotBePlannedIsSaid) {
  const auto outcome =
      optimize_graph(graph_of("input x : f32[n,4]\nr = Relu(x)\noutput y = r"), core_rules(), options_for_code());
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().message.find("--shape"), std::string::npos) << outcome.error().message;
}

}  // namespace
}  // namespace gopt
