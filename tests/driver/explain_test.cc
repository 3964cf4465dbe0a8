// Why a node was rewritten or fused, or was not.
#include <gtest/gtest.h>

#include <algorithm>

#include "../support/graph_with_weights.h"
#include "gopt/node_explanation.h"
#include "rules.h"

namespace gopt {
namespace {

const std::vector<RewriteRule>& hand_rules() {
  static const std::vector<RewriteRule> rules = load_rules(GOPT_SHIPPED_RULES "/hand.rules")->rules;
  return rules;
}
const std::vector<RewriteRule>& core_rules() {
  static const std::vector<RewriteRule> rules = load_rules(GOPT_SHIPPED_RULES "/core.rules")->rules;
  return rules;
}

// Two products of one input, added: with the distributive law, which is marked, they become one.
Graph two_products() {
  return graph_with_weights(
      "input x : f32[64,96]\ninput u : f32[96,128]\ninput v : f32[96,128]\np = MatMul(x, u)\nq = MatMul(x, v)\n"
      "s = Add(p, q)\nr = Relu(s)\noutput y = r");
}

DriverOptions untimed_options() {
  DriverOptions options;
  options.search.max_steps = 20;
  options.search.budget_seconds = 1e6;
  return options;
}

NodeExplanation explain(const Graph& graph, const std::string& node, const std::vector<RewriteRule>& rules,
                        const DriverOptions& options = untimed_options()) {
  const auto found = explain_node(graph, node, rules, options);
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message);
  return found.ok() ? *found : NodeExplanation();
}

bool has_fate(const NodeExplanation& e, RuleFate fate) {
  return std::any_of(e.rules.begin(), e.rules.end(), [&](const RuleAtNode& rule) { return rule.fate == fate; });
}

TEST(ExplainNode, SaysWhichMarkWouldLetARule) {
  const NodeExplanation e = explain(two_products(), "s", core_rules());
  EXPECT_TRUE(e.applied.empty());
  const auto held_back = std::find_if(e.rules.begin(), e.rules.end(), [](const RuleAtNode& rule) {
    return rule.fate == RuleFate::NotAllowed && rule.match.not_allowed.finite_only && rule.match.is_gain;
  });
  ASSERT_NE(held_back, e.rules.end());
  EXPECT_EQ(held_back->why, "finite-only");
  EXPECT_LT(held_back->match.after_ms, e.searched_ms);
  DriverOptions options = untimed_options();
  options.search.allowed_marks.finite_only = true;
  const NodeExplanation allowed = explain(two_products(), "s", core_rules(), options);
  ASSERT_FALSE(allowed.applied.empty());
  EXPECT_TRUE(has_fate(allowed, RuleFate::Applied));
  EXPECT_LT(allowed.result_ms, allowed.original_ms);
  for (const RuleAtNode& rule : allowed.rules) EXPECT_FALSE(rule.match.not_allowed.finite_only) << rule.match.rule;
}

TEST(ExplainNode, ARuleThatGainsNothingSaysSo) {
  const NodeExplanation e = explain(two_products(), "p", core_rules());
  ASSERT_TRUE(has_fate(e, RuleFate::NoGain));
  for (const RuleAtNode& rule : e.rules)
    EXPECT_FALSE(rule.fate == RuleFate::NoGain && rule.match.is_gain) << rule.match.rule;
}

TEST(ExplainNode, ADisabledRuleIsSaidToBe) {
  DriverOptions options = untimed_options();
  options.search.allowed_marks.finite_only = true;
  const NodeExplanation with = explain(two_products(), "s", core_rules(), options);
  ASSERT_FALSE(with.applied.empty());
  options.search.disabled_rules = {with.applied[0].rule};
  const NodeExplanation without = explain(two_products(), "s", core_rules(), options);
  const auto rule = std::find_if(without.rules.begin(), without.rules.end(),
                                 [&](const RuleAtNode& r) { return r.match.rule == with.applied[0].rule; });
  ASSERT_NE(rule, without.rules.end());
  EXPECT_EQ(rule->fate, RuleFate::Disabled);
}

// A record that claims a proof does not make it one.
TEST(ExplainNode, ARuleThatIsNotProvedIsSaidToBe) {
  const auto rules = rules_in(R"(
rule false-tanh
  var x f32[...]
  left
    a = Tanh(x)
    b = Neg(a)
    return b
  right
    a = Tanh(x)
    return a
end
)");
  const NodeExplanation e =
      explain(graph_with_weights("input x : f32[8]\nt = Tanh(x)\nn = Neg(t)\ne = Softmax(n) {axis=0}\noutput y = e"),
              "n", rules);
  ASSERT_EQ(e.rules.size(), 1U);
  EXPECT_EQ(e.rules[0].fate, RuleFate::NotProved);
  EXPECT_NE(e.rules[0].why, "");
  EXPECT_TRUE(e.applied.empty());
}

TEST(ExplainNode, WhatARewriteTookIsFollowedIntoTheResult) {
  const Graph graph = graph_with_weights(R"(  input x : f32[1,3,8,8]
  constant k = f32[4,3,1,1] {1, -2, 3, 0.5, 1, 2, -1, 1, 4, 0.25, -3, 1}
  constant scale = f32[4] {1, 2, 0.5, 1}
  constant shift = f32[4] {0, 1, -1, 2}
  constant mean = f32[4] {0.5, -0.5, 0, 1}
  constant variance = f32[4] {1, 4, 0.25, 2}
  c = Conv(x, k)
  b = BatchNormalization(c, scale, shift, mean, variance)
  r = Relu(b)
  output y = r
)");
  const NodeExplanation e = explain(graph, "b", hand_rules());
  EXPECT_EQ(e.op, "BatchNormalization");
  ASSERT_FALSE(e.applied.empty());
  ASSERT_FALSE(e.result.empty());
  EXPECT_EQ(e.result[0].op, "Conv");
  EXPECT_EQ(e.result[0].plan.role, NodeRole::Library);
}

TEST(ExplainNode, AnUnknownNodeIsAnErrorWithTheNearest) {
  const auto found = explain_node(two_products(), "t", core_rules(), untimed_options());
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message.find("the nearest names are"), std::string::npos) << found.error().message;
}

}  // namespace
}  // namespace gopt
