// When a rule applies and when not, what limits say, and derivations among the shipped rules.
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "derivation_rules.h"
#include "replay.h"

namespace gopt {
namespace {

using Verdict = Derivation::Verdict;

const char* const kShift = R"(rule shift
  var x f32[n]
  left
    a = Slice(x) {starts=[0], ends=[m], axes=[0]}
    b = Relu(a)
    return b
  right
    a = Relu(x)
    b = Slice(a) {starts=[0], ends=[m], axes=[0]}
    return b
  when m >= 2
end
)";

std::string shift_goal(const std::string& when) {
  return "rule goal\n  var x f32[n]\n  left\n    a = Slice(x) {starts=[0], ends=[k], axes=[0]}\n    b = Relu(a)\n"
         "    return b\n  right\n    a = Relu(x)\n    b = Slice(a) {starts=[0], ends=[k], axes=[0]}\n    return b\n" +
         when + "end\n";
}

TEST(DerivationConditions, OneThatIsNotDecidedIsNotMet) {
  const DerivationRules rules(rules_in(kShift));
  EXPECT_EQ(derive_rule(rules_in(shift_goal(""))[0], rules, {}).verdict, Verdict::Saturated);
  EXPECT_EQ(derive_rule(rules_in(shift_goal("  when k >= 1\n"))[0], rules, {}).verdict, Verdict::Saturated);
  EXPECT_EQ(derive_rule(rules_in(shift_goal("  when k >= 2\n"))[0], rules, {}).verdict, Verdict::Follows);
  EXPECT_EQ(derive_rule(rules_in(shift_goal("  when k >= 3\n"))[0], rules, {}).verdict, Verdict::Follows);
}

// g a = g b says nothing of a and b where g is 0.
std::string factor_goal(const std::string& when) {
  const auto sum = [](const std::string& end) {
    return "    q = Slice(y) {starts=[0], ends=[" + end + "], axes=[0]}\n    s = ReduceSum(q) {axes=[0], keepdims=0}\n";
  };
  return "rule goal\n  var x f32[g]\n  var y f32[n]\n  var z f32[b]\n  left\n    p = Relu(x)\n    r = Relu(z)\n" +
         sum("a") + "    return p, r, s\n  right\n    p = Relu(x)\n    r = Relu(z)\n" + sum("b") +
         "    return p, r, s\n  when g*a == g*b" + when + "\nend\n";
}

TEST(DerivationConditions, AnEquationIsDividedByWhatIsNeverZero) {
  const DerivationRules rules(rules_in(kShift));
  EXPECT_EQ(derive_rule(rules_in(factor_goal(" and g >= 1"))[0], rules, {}).verdict, Verdict::Follows);
  EXPECT_NE(derive_rule(rules_in(factor_goal(""))[0], rules, {}).verdict, Verdict::Follows);
}

const char* const kRoot = R"(rule root-squared
  var x f32[...]
  var y f32[...]
  left
    a = Sqrt(x)
    b = Mul(a, a)
    c = Mul(b, y)
    return c
  right
    b = Mul(x, y)
    return b
end
)";

TEST(DerivationDirections, WhatMayHaveNoValueIsNotPutIn) {
  EXPECT_FALSE(DerivationRules(rules_in(kRoot)).is_reversible(0));
  EXPECT_TRUE(DerivationRules(rules_in(kAssociate)).is_reversible(0));
  EXPECT_TRUE(DerivationRules(rules_in(kMerge)).is_reversible(0));
  EXPECT_FALSE(DerivationRules(rules_in(kSplitOfConcat)).is_reversible(0)) << "its right side matches everything";
}

// x + (y + z) = y + (x + z) makes ever more of a sum of seven.
const char* const kExchange = R"(rule exchange
  var x f32[...]
  var y f32[...]
  var z f32[...]
  left
    a = Add(y, z)
    b = Add(x, a)
    return b
  right
    a = Add(x, z)
    b = Add(y, a)
    return b
end
)";

RewriteRule sum_of_seven(const std::string& last) {
  std::string text = "rule goal\n";
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) text += std::string("  var ") + name + " f32[n]\n";
  text +=
      "  left\n    p = Add(a, b)\n    q = Add(p, c)\n    r = Add(q, d)\n    s = Add(r, e)\n    t = Add(s, f)\n"
      "    u = Add(t, g)\n    return u\n";
  text +=
      "  right\n    p = Add(g, f)\n    q = Add(p, e)\n    r = Add(q, d)\n    s = Add(r, c)\n    t = Add(s, b)\n"
      "    u = " +
      last + "\n    return u\nend\n";
  return rules_in(text)[0];
}

TEST(DerivationLimits, AreToldFromSaturation) {
  const DerivationRules rules(rules_in(kExchange));
  DerivationLimits limits;
  limits.nodes = 60;
  const Derivation nodes = derive_rule(sum_of_seven("Mul(t, a)"), rules, {}, limits);
  EXPECT_EQ(nodes.verdict, Verdict::LimitReached);
  EXPECT_EQ(nodes.reason, "more than 60 nodes");
  limits.nodes = 100'000;
  limits.iterations = 1;
  const Derivation iterations = derive_rule(sum_of_seven("Mul(t, a)"), rules, {}, limits);
  EXPECT_EQ(iterations.verdict, Verdict::LimitReached);
  EXPECT_EQ(iterations.reason, "1 iterations");
}

TEST(DerivationLimits, ALongDerivationIsNotWrittenOut) {
  const DerivationRules rules(rules_in(kExchange));
  DerivationLimits limits;
  const Derivation whole = derive_rule(sum_of_seven("Add(t, a)"), rules, {}, limits);
  ASSERT_EQ(whole.verdict, Verdict::Follows) << whole.reason;
  ASSERT_GT(whole.steps.size(), 2u);
  limits.steps = 2;
  const Derivation brief = derive_rule(sum_of_seven("Add(t, a)"), rules, {}, limits);
  EXPECT_EQ(brief.verdict, Verdict::Follows);
  EXPECT_EQ(brief.step_count, whole.step_count);
  EXPECT_TRUE(brief.steps.empty());
}

TEST(DerivationRulesTest, OnlyAllowedOnesAreUsed) {
  const DerivationRules rules(rules_in(std::string(kAssociate) + kDistribute));
  const RewriteRule goal = rules_in(kAssociate)[0];
  EXPECT_EQ(derive_rule(goal, rules, {}).used, std::vector<size_t>{0});
  EXPECT_EQ(derive_rule(goal, rules, {false, true}).verdict, Verdict::Saturated);
}

TEST(DerivationGoal, APartialRuleIsNotRead) {
  RewriteRule goal = rules_in(kReluTwice)[0];
  goal.regions = {{}};
  const Derivation found = derive_rule(goal, DerivationRules(rules_in(kReluTwice)), {});
  EXPECT_EQ(found.verdict, Verdict::NotRead);
  EXPECT_NE(found.reason, "");
}

// What is found does not hang on the order of the rules, nor on that of a sum's arguments.
TEST(DerivationOrder, OfRulesAndOfArgumentsIsOfNoAccount) {
  const std::string text[] = {kAssociate, kDistribute, kSums, kReluTwice, kSplitOfConcat};
  std::string forward, backward;
  for (const std::string& rule : text) forward = forward + rule, backward = rule + backward;
  const DerivationRules one(rules_in(forward)), other(rules_in(backward));
  const auto goal = [](const std::string& left, const std::string& right) {
    return rules_in(
        "rule goal\n  var a f32[n]\n  var b f32[n]\n  var c f32[n]\n  left\n    x = " + left +
        "\n    y = Mul(c, x)\n    z = Add(y, a)\n    return z\n  right\n    p = Mul(a, c)\n    q = Mul(b, c)\n" +
        "    r = " + right + "\n    s = Add(p, r)\n    return s\nend\n")[0];
  };
  for (const char* left : {"Add(a, b)", "Add(b, a)"})
    for (const char* right : {"Add(q, a)", "Add(a, q)"})
      for (const DerivationRules* rules : {&one, &other}) {
        const Derivation found = derive_rule(goal(left, right), *rules, {});
        EXPECT_EQ(found.verdict, Verdict::Follows) << left << right;
        EXPECT_EQ(found.step_count, 2u) << left << right;
      }
}

std::vector<RewriteRule> shipped_rules() {
  std::vector<RewriteRule> rules;
  for (const char* name : {"/core.rules", "/hand.rules"})
    for (RewriteRule& rule : rules_of_file(GOPT_RULES_DIR + std::string(name)))
      if (rule.proof) rules.push_back(std::move(rule));
  return rules;
}

// Each rule by the others: whatever is said to follow is replayed, graph by graph, for random sizes and values.
TEST(DerivationOfShippedRules, EveryStepComputesTheSame) {
  const DerivationRules rules(shipped_rules());
  std::mt19937_64 random(7);
  DerivationLimits limits;
  limits.nodes = 600;
  limits.any_kind = true;
  int derived = 0, graphs = 0;
  for (size_t i = 0; i < rules.rules().size(); i += 7) {
    std::vector<bool> others(rules.rules().size(), true);
    others[i] = false;
    const Derivation found = derive_rule(rules.rules()[i], rules, others, limits);
    if (found.verdict != Verdict::Follows) continue;
    derived++;
    const Replay replay = replay_derivation(random, found, 2);
    graphs += replay.graphs;
    EXPECT_EQ(replay.difference, "") << print_rule(rules.rules()[i]);
  }
  EXPECT_GT(derived, 20);
  EXPECT_GT(graphs, 100);
}

}  // namespace
}  // namespace gopt
