// What follows from which rules: the verdict, the chain of rules, and that every graph of the chain computes the same.
#include "gopt/derivation.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "gopt/interpreter.h"
#include "replay.h"

namespace gopt {
namespace {

using Verdict = Derivation::Verdict;

std::vector<RewriteRule> rules_of(const std::string& text) {
  auto rules = parse_rules(text, "test");
  EXPECT_TRUE(rules.ok()) << (rules.ok() ? "" : rules.error().message) << text;
  return rules.ok() ? *rules : std::vector<RewriteRule>();
}

const char* const kAssociate = R"(rule associate
  var x f32[...,m,k]
  var y f32[k,n]
  var z f32[n,p]
  left
    a = MatMul(x, y)
    b = MatMul(a, z)
    return b
  right
    a = MatMul(y, z)
    b = MatMul(x, a)
    return b
end
)";

const char* const kDistribute = R"(rule distribute
  var x f32[...]
  var y f32[...]
  var z f32[...]
  left
    a = Add(x, y)
    b = Mul(a, z)
    return b
  right
    a = Mul(x, z)
    b = Mul(y, z)
    c = Add(a, b)
    return c
end
)";

const char* const kSplitOfConcat = R"(rule split-of-concat
  var x f32[n,c]
  var y f32[n,d]
  left
    a = Concat(x, y) {axis=1}
    b, e = Split(a) {axis=1, split=[c,d]}
    return b, e
  right
    return x, y
end
)";

const char* const kMerge = R"(rule merge
  var x f32[m,k]
  var u f32[k,n] weight
  var v f32[k,p] weight
  left
    a = MatMul(x, u)
    b = MatMul(x, v)
    return a, b
  right
    w = Concat(u, v) {axis=1}
    c = MatMul(x, w)
    d, e = Split(c) {axis=1, split=[n,p]}
    return d, e
end
)";

const char* const kReluTwice = R"(rule relu-twice
  var x f32[...]
  left
    a = Relu(x)
    b = Relu(a)
    return b
  right
    a = Relu(x)
    return a
end
)";

const char* const kSums = R"(rule sums
  var x f32[...]
  var y f32[...]
  var z f32[...]
  left
    a = Add(x, y)
    b = Add(a, z)
    return b
  right
    a = Add(y, z)
    b = Add(x, a)
    return b
end
)";

struct Row {
  std::string name;
  std::string rules, goal;  // the goal below "rule goal"
  Verdict verdict = Verdict::Saturated;
  size_t steps = 0;
  bool any_kind = false;
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

class DerivationTest : public testing::TestWithParam<Row> {};

TEST_P(DerivationTest, IsAsExpected) {
  const Row& row = GetParam();
  const DerivationRules rules(rules_of(row.rules));
  const auto goals = rules_of("rule goal\n" + row.goal + "end\n");
  ASSERT_EQ(goals.size(), 1u);
  DerivationLimits limits;
  limits.any_kind = row.any_kind;
  const Derivation found = derive_rule(goals[0], rules, {}, limits);
  ASSERT_EQ(found.verdict, row.verdict) << to_string(found.verdict) << " " << found.reason;
  EXPECT_EQ(found.step_count, row.steps);
  if (found.verdict != Verdict::Follows) return;
  std::mt19937_64 random(5);
  const Replay replay = replay_derivation(random, found, 4);
  EXPECT_EQ(replay.difference, "");
  EXPECT_GT(replay.graphs, 0);
}

const Row kRows[] = {
    {"InTwoSteps", kAssociate, R"(
  var a f32[m,k]
  var b f32[k,n]
  var c f32[n,p]
  var d f32[p,q]
  left
    x = MatMul(a, b)
    y = MatMul(x, c)
    z = MatMul(y, d)
    return z
  right
    x = MatMul(c, d)
    y = MatMul(b, x)
    z = MatMul(a, y)
    return z
)",
     Verdict::Follows, 2},
    {"AgainstTheRulesDirection", kAssociate, R"(
  var a f32[m,k]
  var b f32[k,n]
  var c f32[n,p]
  left
    x = MatMul(b, c)
    y = MatMul(a, x)
    return y
  right
    x = MatMul(a, b)
    y = MatMul(x, c)
    return y
)",
     Verdict::Follows, 1},
    {"CommutedArgumentsAreOneTerm", kDistribute, R"(
  var a f32[...]
  var b f32[...]
  var c f32[...]
  left
    x = Add(b, a)
    y = Mul(c, x)
    return y
  right
    x = Mul(c, a)
    y = Mul(c, b)
    z = Add(x, y)
    return z
)",
     Verdict::Follows, 1},
    {"BelowOtherOperatorsByCongruence", kReluTwice, R"(
  var a f32[n,m]
  left
    x = Relu(a)
    y = Relu(x)
    z = Tanh(y)
    w = MatMul(z, z)
    return w
  right
    x = Relu(a)
    z = Tanh(x)
    w = MatMul(z, z)
    return w
  when n == m
)",
     Verdict::Follows, 1},
    {"WhatIsNotSoIsNotClaimed", kAssociate, R"(
  var a f32[n,n]
  var b f32[n,n]
  left
    x = MatMul(a, b)
    return x
  right
    x = MatMul(b, a)
    return x
)",
     Verdict::Saturated, 0},
    {"SeveralRoots", std::string(kMerge) + kSplitOfConcat, R"(
  var x f32[m,k]
  var u f32[k,n] weight
  var v f32[k,p] weight
  left
    a = MatMul(x, u)
    b = MatMul(x, v)
    c = Tanh(a)
    return c, b
  right
    w = Concat(u, v) {axis=1}
    c = MatMul(x, w)
    d, e = Split(c) {axis=1, split=[n,p]}
    f = Tanh(d)
    return f, e
)",
     Verdict::Follows, 2},
    {"WeightsAloneMatchWeights", kMerge, R"(
  var x f32[m,k]
  var u f32[k,n]
  var v f32[k,p]
  left
    a = MatMul(x, u)
    b = MatMul(x, v)
    return a, b
  right
    w = Concat(u, v) {axis=1}
    c = MatMul(x, w)
    d, e = Split(c) {axis=1, split=[n,p]}
    return d, e
)",
     Verdict::Saturated, 0},
    {"UnlessKindsAreLeftOut", kMerge, R"(
  var x f32[m,k]
  var u f32[k,n]
  var v f32[k,p]
  left
    a = MatMul(x, u)
    b = MatMul(x, v)
    return a, b
  right
    w = Concat(u, v) {axis=1}
    c = MatMul(x, w)
    d, e = Split(c) {axis=1, split=[n,p]}
    return d, e
)",
     Verdict::Follows, 2, true},
    {"AttributesMustAgree", kSplitOfConcat, R"(
  var x f32[n,c]
  var y f32[n,c]
  left
    a = Concat(x, y) {axis=0}
    b, e = Split(a) {axis=0, split=[n,n]}
    return b
  right
    return x
)",
     Verdict::Saturated, 0},
    {"SizesMustAgree", kSplitOfConcat, R"(
  var x f32[n,c]
  var y f32[n,d]
  left
    a = Concat(x, y) {axis=1}
    b, e = Split(a) {axis=1, split=[d,c]}
    return b
  right
    a = Concat(y, x) {axis=1}
    b, e = Split(a) {axis=1, split=[d,c]}
    return b
)",
     Verdict::Saturated, 0},
    {"SizesThatTheConditionMakesEqualDo", kSplitOfConcat, R"(
  var x f32[n,c]
  var y f32[n,d]
  left
    a = Concat(x, y) {axis=1}
    b, e = Split(a) {axis=1, split=[d,c]}
    return b
  right
    return x
  when c == d
)",
     Verdict::Follows, 1},
    {"EqualPartsOfOneConcat", kSplitOfConcat, R"(
  var x f32[n,c]
  left
    a = Concat(x, x) {axis=1}
    b, e = Split(a) {axis=1, split=[c,c]}
    f = Relu(b)
    return f
  right
    a = Relu(x)
    return a
)",
     Verdict::Follows, 1},
    {"CopiesAreNothing", kReluTwice, R"(
  var x f32[n]
  left
    a = Relu(x)
    b = Identity(a)
    c = Relu(b)
    return c
  right
    a = Relu(x)
    return a
)",
     Verdict::Follows, 2},
    {"NumbersAreComputed", kSums, R"(
  var x f32[]
  left
    constant one = f32[] {1.0}
    a = Add(x, one)
    b = Add(a, one)
    return b
  right
    constant two = f32[] {2.0}
    a = Add(x, two)
    return a
)",
     Verdict::Follows, 2},
    {"WhatIsNotExactIsNot", kSums, R"(
  var x f32[]
  left
    constant one = f32[] {0.1}
    constant two = f32[] {0.2}
    a = Add(x, one)
    b = Add(a, two)
    return b
  right
    constant three = f32[] {0.3}
    a = Add(x, three)
    return a
)",
     Verdict::Saturated, 0},
};
INSTANTIATE_TEST_SUITE_P(Derivation, DerivationTest, testing::ValuesIn(kRows),
                         [](const auto& info) { return info.param.name; });

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
  const DerivationRules rules(rules_of(kShift));
  EXPECT_EQ(derive_rule(rules_of(shift_goal(""))[0], rules, {}).verdict, Verdict::Saturated);
  EXPECT_EQ(derive_rule(rules_of(shift_goal("  when k >= 1\n"))[0], rules, {}).verdict, Verdict::Saturated);
  EXPECT_EQ(derive_rule(rules_of(shift_goal("  when k >= 2\n"))[0], rules, {}).verdict, Verdict::Follows);
  EXPECT_EQ(derive_rule(rules_of(shift_goal("  when k >= 3\n"))[0], rules, {}).verdict, Verdict::Follows);
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
  const DerivationRules rules(rules_of(kShift));
  EXPECT_EQ(derive_rule(rules_of(factor_goal(" and g >= 1"))[0], rules, {}).verdict, Verdict::Follows);
  EXPECT_NE(derive_rule(rules_of(factor_goal(""))[0], rules, {}).verdict, Verdict::Follows);
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
  EXPECT_FALSE(DerivationRules(rules_of(kRoot)).is_reversible(0));
  EXPECT_TRUE(DerivationRules(rules_of(kAssociate)).is_reversible(0));
  EXPECT_TRUE(DerivationRules(rules_of(kMerge)).is_reversible(0));
  EXPECT_FALSE(DerivationRules(rules_of(kSplitOfConcat)).is_reversible(0)) << "its right side matches everything";
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
  return rules_of(text)[0];
}

TEST(DerivationLimits, AreToldFromSaturation) {
  const DerivationRules rules(rules_of(kExchange));
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
  const DerivationRules rules(rules_of(kExchange));
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
  const DerivationRules rules(rules_of(std::string(kAssociate) + kDistribute));
  const RewriteRule goal = rules_of(kAssociate)[0];
  EXPECT_EQ(derive_rule(goal, rules, {}).used, std::vector<size_t>{0});
  EXPECT_EQ(derive_rule(goal, rules, {false, true}).verdict, Verdict::Saturated);
}

TEST(DerivationGoal, APartialRuleIsNotRead) {
  RewriteRule goal = rules_of(kReluTwice)[0];
  goal.regions = {{}};
  const Derivation found = derive_rule(goal, DerivationRules(rules_of(kReluTwice)), {});
  EXPECT_EQ(found.verdict, Verdict::NotRead);
  EXPECT_NE(found.reason, "");
}

std::vector<RewriteRule> shipped_rules() {
  std::vector<RewriteRule> rules;
  for (const char* name : {"/core.rules", "/hand.rules"}) {
    std::ifstream file(GOPT_RULES_DIR + std::string(name));
    std::stringstream text;
    text << file.rdbuf();
    for (RewriteRule& rule : rules_of(text.str()))
      if (rule.proof) rules.push_back(std::move(rule));
  }
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
