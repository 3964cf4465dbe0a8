// What makes a result differ from its original: rules, kernels, in value and in time.
#include "gopt/bisect.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "../../driver/guilty_rewrites.h"
#include "../../driver/planned_graph.h"
#include "../../driver/wrong_kernel.h"
#include "../support/graph_with_weights.h"
#include "gopt/interpreter.h"
#include "gopt/kernel_costs.h"
#include "rules.h"

namespace gopt {
namespace {

using namespace driver;

// Two rules that hold and one that does not: nothing here asks for proofs.
const char* const kRules = R"(
rule relu-twice
  var x f32[...]
  left
    a = Relu(x)
    b = Relu(a)
    return b
  right
    c = Relu(x)
    return c
end
rule abs-of-abs
  var x f32[...]
  left
    a = Abs(x)
    b = Abs(a)
    return b
  right
    c = Abs(x)
    return c
end
rule false-neg-of-tanh
  var x f32[...]
  left
    a = Tanh(x)
    b = Neg(a)
    return b
  right
    a = Tanh(x)
    return a
end
)";

Graph chain() {
  return graph_with_weights(
      "input x : f32[64]\na = Relu(x)\nb = Relu(a)\nc = Tanh(b)\nd = Neg(c)\ne = Abs(d)\nf = Abs(e)\n"
      "h = Identity(d)\ng = Add(f, h)\noutput y = g");
}

SearchOptions untimed() {
  SearchOptions options;
  options.budget_seconds = 1e6;
  return options;
}

std::unique_ptr<CostOracle> oracle() { return plan_cost_oracle({}, analytic_kernel_costs({})); }

std::vector<double> values_of(const Graph& graph) {
  std::vector<double> x;
  for (int k = 0; k < 64; k++) x.push_back(0.1 * k - 3);
  const auto values = interpret(graph, {{"x", Tensor::from_values<double>(ElementType::Float32, {64}, x)}});
  EXPECT_TRUE(values.ok()) << (values.ok() ? "" : values.error().message);
  return (*values)[0].to_doubles();
}

TEST(GuiltyRewrites, TheFalseRuleIsFoundAmongThoseThatHold) {
  const Graph graph = chain();
  const auto rules = rules_in(kRules);
  const auto result = optimize(graph, rules, *oracle(), untimed());
  ASSERT_TRUE(result.ok()) << result.error().message;
  const std::vector<std::string> suspects = what_made(*result);
  EXPECT_EQ(suspects.size(), 4U) << "three rules and a pass";
  const std::vector<double> expected = values_of(graph);
  const auto differs = [&](const OptimizeResult& some) -> Result<bool> { return values_of(some.graph) != expected; };
  ASSERT_TRUE(*differs(*result));
  const auto found = find_guilty(graph, suspects, rules, *oracle(), untimed(), differs, 100);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->rules, std::vector<std::string>{"false-neg-of-tanh"});
  EXPECT_TRUE(found->passes.empty());
  EXPECT_TRUE(found->is_smallest);
}

TEST(GuiltyRewrites, WhereNothingDiffersNothingIsGuilty) {
  const auto rules = rules_in(kRules);
  const auto never = [](const OptimizeResult&) -> Result<bool> { return false; };
  const auto found = find_guilty(chain(), {"relu-twice", "drop-identities"}, rules, *oracle(), untimed(), never, 100);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->empty());
  EXPECT_EQ(found->searches, 1);
}

TEST(GuiltyRewrites, APassCanBeGuiltyToo) {
  const auto rules = rules_in(kRules);
  const auto lost_identity = [](const OptimizeResult& some) -> Result<bool> {
    const auto& nodes = some.graph.nodes();
    return std::none_of(nodes.begin(), nodes.end(), [](const NodePtr& node) { return node->is(OpKind::Identity); });
  };
  const auto found = find_guilty(chain(), {"relu-twice", "abs-of-abs", "drop-identities"}, rules, *oracle(), untimed(),
                                 lost_identity, 100);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->rules.empty());
  EXPECT_EQ(found->passes, std::vector<std::string>{"drop-identities"});
}

TEST(WrongKernel, TheFirstThatRoundsOtherwiseIsFoundAtToleranceNought) {
  const Graph graph = graph_with_weights("input x : f32[4096]\nr = Relu(x)\ne = Exp(r)\noutput y = r\noutput z = e");
  const auto inputs = draw_inputs(graph, 1);
  ASSERT_TRUE(inputs.ok());
  const CostSource costs;
  const auto exact = first_wrong_kernel(graph, {}, costs, *inputs, {0, 0});
  ASSERT_TRUE(exact.ok()) << exact.error().message;
  ASSERT_TRUE(*exact) << "an exponential that is always rounded as the interpreter's";
  EXPECT_EQ((*exact)->difference.output, "e");
  EXPECT_EQ((*exact)->right_before, 1);
  EXPECT_NE((*exact)->kernel.find("Exp"), std::string::npos) << (*exact)->kernel;
  const auto close = first_wrong_kernel(graph, {}, costs, *inputs, {});
  ASSERT_TRUE(close.ok());
  EXPECT_FALSE(*close);
}

const std::vector<RewriteRule>& core_rules() {
  static const std::vector<RewriteRule> rules = load_rules(GOPT_SHIPPED_RULES "/core.rules")->rules;
  return rules;
}

// The distributive law, which rounds otherwise.
Graph two_products() {
  return graph_with_weights(
      "input x : f32[64,96]\ninput u : f32[96,128]\ninput v : f32[96,128]\np = MatMul(x, u)\nq = MatMul(x, v)\n"
      "s = Add(p, q)\nr = Relu(s)\nt = Relu(r)\noutput y = t");
}

DriverOptions interpreted() {
  DriverOptions options;
  options.search = untimed();
  options.search.max_steps = 20;
  options.search.allowed_marks.finite_only = true;
  options.check.engine = CheckEngine::Interpreter;
  return options;
}

TEST(BisectValue, WhatAgreesHasNoGuilty) {
  const auto found = bisect_value(two_products(), core_rules(), interpreted());
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_FALSE(found->applied.empty());
  EXPECT_TRUE(found->check.passed);
  EXPECT_TRUE(found->guilty.empty());
  EXPECT_FALSE(found->kernel);
  EXPECT_EQ(found->kernel_note, "");
  EXPECT_FALSE(found->differs());
}

TEST(BisectValue, AtToleranceNoughtTheRuleThatRoundsOtherwiseIsGuilty) {
  DriverOptions options = interpreted();
  options.check.tolerance = {0, 0};
  const auto found = bisect_value(two_products(), core_rules(), options);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_TRUE(found->differs());
  EXPECT_FALSE(found->check.passed);
  ASSERT_EQ(found->guilty.size(), 1U);
  EXPECT_GT(found->applied.size(), 1U) << "one that takes away the second Relu, too";
  EXPECT_FALSE(found->guilty_check.passed);
  // Alone it makes the difference, and without it there is none.
  DriverOptions without = options;
  without.search.disabled_rules = found->applied;
  std::erase_if(without.search.disabled_rules, [&](const std::string& name) {
    return name == found->guilty[0] || std::find(pass_names().begin(), pass_names().end(), name) != pass_names().end();
  });
  const auto alone = bisect_value(two_products(), core_rules(), without);
  ASSERT_TRUE(alone.ok());
  EXPECT_FALSE(alone->check.passed);
}

// A result that does not agree is searched again without what makes it so: the other rules stay.
TEST(Driver, OnlyGuiltyRulesAreLeftOut) {
  DriverOptions options = interpreted();
  options.check.tolerance = {0, 0};
  const auto outcome = optimize_graph(two_products(), core_rules(), options);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_TRUE(outcome->check.passed);
  ASSERT_FALSE(outcome->notes.empty());
  EXPECT_NE(outcome->notes[0].find("it is searched again without `"), std::string::npos) << outcome->notes[0];
  EXPECT_NE(outcome->notes[0].find("which alone"), std::string::npos) << outcome->notes[0];
  EXPECT_FALSE(outcome->result.applied.empty()) << "what takes away the second Relu is exact";
}

TEST(BisectTime, ATimeForEachRuleAndKernel) {
  DriverOptions options = interpreted();
  options.runs = 3;
  const auto found = bisect_time(two_products(), core_rules(), options);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_GT(found->before_ms, 0);
  EXPECT_GT(found->after_ms, 0);
  EXPECT_LE(found->low, found->speedup);
  EXPECT_LE(found->speedup, found->high);
  ASSERT_GE(found->without.size(), 2U);
  bool has_timed = false;
  for (const TimeWithout& without : found->without) {
    EXPECT_EQ(without.note, "");
    EXPECT_LE(without.low, without.ratio);
    EXPECT_LE(without.ratio, without.high);
    has_timed |= !without.has_same_kernels;
  }
  EXPECT_TRUE(has_timed) << "without the distributive law there is a product more";
  EXPECT_FALSE(found->kernels.empty());
}

}  // namespace
}  // namespace gopt
