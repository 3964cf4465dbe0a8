// What follows from which rules, with how many steps, and that every graph of the chain computes the same.
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "derivation_rules.h"
#include "replay.h"

namespace gopt {
namespace {

using Verdict = Derivation::Verdict;

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
  const DerivationRules rules(rules_in(row.rules));
  const auto goals = rules_in("rule goal\n" + row.goal + "end\n");
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
    // Transpose(Transpose(y)) is in neither side; it is made where Transpose(y) is.
    {"AnOperandIsDoubled", R"(rule twice
  var x f32[m,n]
  left
    a = Transpose(x) {perm=[1,0]}
    b = Transpose(a) {perm=[1,0]}
    return b
  right
    return x
end
rule beside
  var x f32[m,k]
  var y f32[k,n]
  left
    a = Transpose(y) {perm=[1,0]}
    b = Concat(x, a) {axis=0}
    c = Transpose(b) {perm=[1,0]}
    return c
  right
    a = Transpose(x) {perm=[1,0]}
    b = Concat(a, y) {axis=1}
    return b
end
)",
     R"(
  var x f32[m,k]
  var y f32[n,k]
  left
    a = Concat(x, y) {axis=0}
    b = Transpose(a) {perm=[1,0]}
    return b
  right
    a = Transpose(x) {perm=[1,0]}
    b = Transpose(y) {perm=[1,0]}
    c = Concat(a, b) {axis=1}
    return c
)",
     Verdict::Follows, 2},
    // What channels are of the first convolution's groups and what of the second's is one product that no symbol is.
    {"EqualProductsOfSizes", R"(rule scaled
  var x f32[b,g*i,h,w]
  var y f32[g*o,i,r,s]
  var z f32[]
  left
    a = Conv(x, y) {group=g}
    b = Mul(a, z)
    return b
  right
    a = Mul(x, z)
    b = Conv(a, y) {group=g}
    return b
end
)",
     R"(
  var x f32[b,g*i,h,w]
  var u f32[g*o,i,1,1]
  var v f32[l*p,j,1,1]
  var z f32[]
  left
    a = Conv(x, u) {group=g}
    b = Conv(a, v) {group=l}
    c = Mul(b, z)
    return c
  right
    a = Mul(x, z)
    b = Conv(a, u) {group=g}
    c = Conv(b, v) {group=l}
    return c
  when g*o == l*j
)",
     Verdict::Follows, 2},
};
INSTANTIATE_TEST_SUITE_P(Derivation, DerivationTest, testing::ValuesIn(kRows),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace gopt
