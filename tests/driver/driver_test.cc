// One optimization as a value: what comes out is one choice, and nothing is printed on the way.
#include "gopt/driver.h"

#include <gtest/gtest.h>

#include <chrono>

#include "gopt/codegen.h"
#include "gopt/kernel_costs.h"
#include "gopt/rule.h"
#include "gopt/text.h"
#include "test_folder.h"

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

TEST(Driver, PlansOfBothAreThereWhereTheyAreWanted) {
  DriverOptions options = options_for_code();
  options.wants_code = false;
  const auto without = optimize_graph(two_products(), core_rules(), options);
  ASSERT_TRUE(without.ok()) << without.error().message;
  EXPECT_FALSE(without->plan || without->original_plan);
  options.wants_plans = true;
  const auto outcome = optimize_graph(two_products(), core_rules(), options);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  ASSERT_TRUE(outcome->plan && outcome->original_plan);
  EXPECT_EQ(outcome->plan->graph.hash(), outcome->result.graph.hash());
  EXPECT_EQ(outcome->original_plan->graph.hash(), two_products().hash());
  EXPECT_LT(outcome->plan->estimated_ms, outcome->original_plan->estimated_ms);
}

TEST(Driver, APlanThatCannotBeMadeIsNoErrorWhereOnlyPlansAreWanted) {
  DriverOptions options = options_for_code();
  options.wants_code = false;
  options.wants_plans = true;
  const auto outcome = optimize_graph(graph_of("input x : f32[n,4]\nr = Relu(x)\noutput y = r"), core_rules(), options);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_FALSE(outcome->plan);
  EXPECT_NE(outcome->plan_note.find("--shape"), std::string::npos) << outcome->plan_note;
}

TEST(Driver, WhatIsKeptAsItWasStandsForItself) {
  DriverOptions options = options_for_code();
  options.is_writable = [](const Graph&) -> Status { return Error{"no operator for that"}; };
  const auto outcome = optimize_graph(two_products(), core_rules(), options);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  ASSERT_EQ(outcome->result.origins.size(), two_products().nodes().size());
  for (uint32_t node = 0; node < outcome->result.origins.size(); node++)
    EXPECT_EQ(outcome->result.origins[node], std::vector<NodeId>{NodeId{node}});
}

TEST(Driver, TheCheckHasTheDifferencesOfEachKindOfInputs) {
  DriverOptions options = options_for_code();
  options.wants_code = false;
  const auto outcome = optimize_graph(two_products(), core_rules(), options);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  const CheckReport& check = outcome->check;
  ASSERT_GT(check.draws.size(), 1U);
  ASSERT_EQ(check.differences_of_draw.size(), check.draws.size());
  for (const auto& differences : check.differences_of_draw) {
    ASSERT_EQ(differences.size(), 1U);
    EXPECT_EQ(differences[0].output, "y");
  }
}

TEST(Driver, NamesTheKindsOfInputsThatThereWasNoTimeFor) {
  DriverOptions options = options_for_code();
  options.wants_code = false;
  options.check.seconds = 0;
  const auto outcome = optimize_graph(two_products(), core_rules(), options);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  const CheckReport& check = outcome->check;
  EXPECT_TRUE(check.checked && check.passed);
  EXPECT_EQ(check.draws, std::vector<std::string>{"ordinary"});
  ASSERT_GE(check.not_drawn.size(), 4U);
  EXPECT_EQ(check.not_drawn[0], "large");
}

TEST(Driver, SaysWhatItSpentItsTimeOn) {
  const auto outcome = optimize_graph(two_products(), core_rules(), options_for_code());
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  std::vector<std::string> names;
  for (const Phase& phase : outcome->phases) names.push_back(phase.name);
  EXPECT_EQ(names, (std::vector<std::string>{"searching", "proving rules", "checking", "timing the code",
                                             "building the code"}));
}

TEST(Phases, OneWithinAnotherStopsTheOuterClock) {
  PhaseClock clock;
  const auto start = std::chrono::steady_clock::now();
  volatile int work = 0;
  for (int k = 0; k < 2; k++) {
    const PhaseClock::Running outer(clock, "outer");
    const PhaseClock::Running inner(clock, "inner");
    for (int i = 0; i < 100000; i++) work = work + i;
  }
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSERT_EQ(clock.phases().size(), 2U);
  EXPECT_EQ(clock.phases()[0].name, "outer");
  EXPECT_EQ(clock.phases()[1].times, 2);
  EXPECT_GT(clock.phases()[1].seconds, 0);
  EXPECT_LE(clock.phases()[0].seconds + clock.phases()[1].seconds, passed) << "no second is counted twice";
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

// Its kernels' times are others than when the first searched, which timed as it went: searching anew might end
// elsewhere.
TEST(Driver, ASecondRunWithTheSameCacheDoesWhatTheFirstDid) {
  const TestFolder folder;
  DriverOptions options = options_for_code();
  options.measured_costs = true;
  options.cache = folder.file("times");
  const auto first = optimize_graph(two_products(), core_rules(), options);
  ASSERT_TRUE(first.ok()) << first.error().message;
  const auto second = optimize_graph(two_products(), core_rules(), options);
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_GT(first->kernels_timed, 0);
  EXPECT_NE(first->result.stop_reason, StopReason::Followed);
  EXPECT_EQ(second->kernels_timed, 0);
  EXPECT_EQ(second->plans_timed, 0);
  EXPECT_EQ(second->result.stop_reason, StopReason::Followed);
  EXPECT_EQ(second->result.graphs_seen, 0);
  EXPECT_EQ(print_plan(*second->plan), print_plan(*first->plan));
  EXPECT_EQ(second->result.applied.size(), first->result.applied.size());
  // Beside other work the rewritten model may be timed as no faster, and is not kept.
  EXPECT_TRUE(first->result.applied.empty() || !first->proofs.empty());
  EXPECT_EQ(second->proofs.empty(), second->result.applied.empty()) << "rules are proved in each run";
  options.search.max_steps = 40;
  const auto other = optimize_graph(two_products(), core_rules(), options);
  ASSERT_TRUE(other.ok()) << other.error().message;
  EXPECT_NE(other->result.stop_reason, StopReason::Followed) << "another search";
  options.cost_model = CostModel::Sum;
  const auto by_sums = optimize_graph(two_products(), core_rules(), options);
  ASSERT_TRUE(by_sums.ok()) << by_sums.error().message;
  EXPECT_NE(by_sums->result.stop_reason, StopReason::Followed) << "by other costs";
}

// Where no code is timed, what was found stays, whatever else the machine does.
TEST(Driver, RulesAreProvedInEachRunWithTheSameCache) {
  const TestFolder folder;
  DriverOptions options = options_for_code();
  options.measured_costs = true;
  options.times_code = false;
  options.cache = folder.file("times");
  for (const bool is_known : {false, true}) {
    const auto outcome = optimize_graph(two_products(), core_rules(), options);
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    EXPECT_EQ(outcome->result.stop_reason == StopReason::Followed, is_known);
    EXPECT_FALSE(outcome->result.applied.empty());
    EXPECT_FALSE(outcome->proofs.empty());
  }
}

TEST(Driver, ASearchThatHadNoTimeIsNotDoneAgain) {
  const TestFolder folder;
  DriverOptions options = options_for_code();
  options.measured_costs = true;
  options.cache = folder.file("times");
  options.search.budget_seconds = 0;
  for (int run = 0; run < 2; run++) {
    const auto outcome = optimize_graph(two_products(), core_rules(), options);
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    EXPECT_EQ(outcome->result.stop_reason, StopReason::TimeLimit);
  }
}

}  // namespace
}  // namespace gopt
