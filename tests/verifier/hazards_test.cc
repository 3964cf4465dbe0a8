// Conditions, marks and verdicts at the edges: what a known tool got wrong, and what holds only for some sizes.
#include "rule_files.h"

namespace gopt {
namespace {

RewriteRule rule(const std::string& variables, const std::string& left, const std::string& right,
                 const std::string& rest = "") {
  return rule_of("rule x\n" + variables + "\nleft\n" + left + "\nright\n" + right + "\n" + rest + "end\n");
}

TEST(Hazards, MissingRequirementOfTheRightSideBecomesTheCondition) {
  const Verification v = verify_rule(
      rule("var x f32[m,a]\nvar y f32[m,b]", "t = Concat(x, y) {axis=1}\nz = ReduceMax(t) {axes=[1]}\nreturn z",
           "s = ReduceMax(x) {axes=[1]}\nt = ReduceMax(y) {axes=[1]}\nz = Max(s, t)\nreturn z"));
  EXPECT_EQ(v.verdict, Verdict::Proved) << v.reason;
  EXPECT_EQ(to_string(v.condition), "a >= 1 and b >= 1");
}

// An axis of extent p*q is taken apart into positions below q and below p, of which there are none where both are
// negative; there the sums are 2x and x.
TEST(Hazards, TwoNegativeFactorsHaveAPositiveProduct) {
  const Verification v = verify_rule(
      rule("var x f32[]",
           "e = Expand(x) {shape=[1,p*q]}\nt = Trilu(e) {k=p, upper=1}\ns = ReduceSum(t) {axes=[1], keepdims=1}\n"
           "y = Mul(e, s)\nreturn y",
           "e = Expand(x) {shape=[1,p*q]}\nf = Expand(x) {shape=[1,p*q-p]}\n"
           "s = ReduceSum(f) {axes=[1], keepdims=1}\ny = Mul(e, s)\nreturn y"));
  EXPECT_FALSE(v.verdict == Verdict::Proved && v.condition.is_true());
}

// The proof below a leading axis is for any extent of it, not for that of an axis of the rule.
TEST(Hazards, TheLeadingAxisIsNoneOfTheRulesSizes) {
  const std::string left = "y = Relu(x)\nz = Relu(y)\nreturn z", right = "y = Relu(x)\nreturn y";
  EXPECT_EQ(verify_rule(rule("var x f32[...,n]", left, right)).verdict, Verdict::Proved);
  EXPECT_EQ(verify_rule(rule("var x f32[...,prefix]", left, right)).verdict, Verdict::Unknown);
}

TEST(Hazards, ShapesThatNeverAgreeAreRefuted) {
  const Verification v =
      verify_rule(rule("var x f32[a,b]", "y = Identity(x)\nreturn y", "c = Concat(x, x) {axis=0}\nreturn c"));
  EXPECT_EQ(v.verdict, Verdict::Refuted);
}

TEST(Hazards, UnequalBroadcastExtentsAreACondition) {
  const Verification v =
      verify_rule(rule("var x f32[a]\nvar y f32[b]", "z = Add(x, y)\nreturn z", "z = Add(y, x)\nreturn z"));
  EXPECT_EQ(v.verdict, Verdict::Proved) << v.reason;
  EXPECT_EQ(to_string(v.condition), "(a == b) or (a == 1) or (b == 1)");
}

TEST(Hazards, SubtractionFromItselfIsFiniteOnly) {
  const Verification v =
      verify_rule(rule("var x f32[n]", "z = Sub(x, x)\nreturn z", "z = FillLike(x) {value=0}\nreturn z"));
  EXPECT_EQ(v.verdict, Verdict::Proved) << v.reason;
  EXPECT_TRUE(v.marks.finite_only);
}

TEST(Hazards, SinePlusCosineIsFiniteOnlyAndChangesRounding) {
  const Verification v =
      verify_rule(rule("var x f32[n]", "s = Sin(x)\na = Mul(s, s)\nc = Cos(x)\nb = Mul(c, c)\nz = Add(a, b)\nreturn z",
                       "z = FillLike(x) {value=1}\nreturn z"));
  EXPECT_EQ(v.verdict, Verdict::Proved) << v.reason;
  EXPECT_TRUE(v.marks.finite_only);
  EXPECT_TRUE(v.marks.changes_rounding);
}

TEST(Hazards, AssociationReassociates) {
  const Verification v =
      verify_rule(rule("var x f32[n]\nvar y f32[n]\nvar z f32[n]", "a = Add(x, y)\nb = Add(a, z)\nreturn b",
                       "a = Add(y, z)\nb = Add(x, a)\nreturn b"));
  EXPECT_EQ(v.verdict, Verdict::Proved) << v.reason;
  EXPECT_TRUE(v.marks.reassociates);
  EXPECT_FALSE(v.marks.finite_only);
}

// Sampling would take minutes, and say less than symbols do.
TEST(Hazards, ATensorTooLargeForSamplesIsUnknownAtOnce) {
  const std::string twice = "c = Add(x, x)\nz = ReduceSum(c) {axes=[0]}\nreturn z",
                    sum = "c = ReduceSum(x) {axes=[0]}\nz = Add(c, c)\nreturn z";
  const Verification v = verify_rule(rule("var x f32[100000000]", twice, sum));
  EXPECT_EQ(v.verdict, Verdict::Unknown);
  EXPECT_NE(v.reason.find("the variable \"x\" has more than the 1048576 elements"), std::string::npos) << v.reason;
  EXPECT_EQ(verify_rule(rule("var x f32[n]", twice, sum)).verdict, Verdict::Proved);
}

TEST(Hazards, DataMovementHasNoMarks) {
  const Verification v = verify_rule(
      rule("var x f32[a,b]", "y = Transpose(x)\nz = Relu(y)\nreturn z", "y = Relu(x)\nz = Transpose(y)\nreturn z"));
  EXPECT_EQ(v.verdict, Verdict::Proved) << v.reason;
  EXPECT_EQ(v.marks, RuleMarks{});
}

TEST(Hazards, DivisionThatIsNowhereDefinedIsRefuted) {
  const Verification v = verify_rule(rule("var a f32[n]\nvar b f32[n]\nvar c f32[n]",
                                          "p = Sub(a, b)\nq = Sub(c, c)\nz = Div(p, q)\nreturn z",
                                          "p = Sub(a, b)\nq = Sub(c, c)\nz = Div(p, q)\ny = Identity(z)\nreturn y"));
  EXPECT_EQ(v.verdict, Verdict::Refuted);
  EXPECT_EQ(v.reason, "the left side has no finite value");
}

TEST(Hazards, ImpossibleConditionIsRefuted) {
  const Verification v =
      verify_rule(rule("var x f32[n]", "y = Relu(x)\nreturn y", "y = Neg(x)\nreturn y", "when n >= 3 and n < 2\n"));
  EXPECT_EQ(v.verdict, Verdict::Refuted);
  EXPECT_EQ(v.reason, "the left side is never defined: no sizes satisfy the condition");
}

TEST(Hazards, PrefixThroughAnOperatorThatIsNotPointwiseIsNotProved) {
  const Verification v = verify_rule(rule("var x f32[...,a,b]", "y = Flatten(x) {axis=1}\nz = Relu(y)\nreturn z",
                                          "y = Relu(x)\nz = Flatten(y) {axis=1}\nreturn z"));
  EXPECT_EQ(v.verdict, Verdict::Unknown);
  EXPECT_NE(v.reason.find("not pointwise in leading axes"), std::string::npos) << v.reason;
}

TEST(Hazards, PrefixOnOneOperandOfABroadcastIsNotProved) {
  const Verification v =
      verify_rule(rule("var x f32[...,n]\nvar y f32[m,n]", "z = Add(x, y)\nreturn z", "z = Add(y, x)\nreturn z"));
  EXPECT_EQ(v.verdict, Verdict::Unknown) << to_string(v.condition);
}

// What is 0 at single places, which draws of numbers hardly meet: the proof keeps such rules out.
TEST(Hazards, WhatIsZeroSomewhereIsNotPositive) {
  const std::string shifted = "constant c = f32[] {0.34375}\nconstant o = f32[] {1}\nd = Sub(x, c)\n";
  const std::pair<std::string, std::string> rows[] = {
      {shifted + "e = Cosh(d)\nz = Equal(e, o)\nreturn z", "z = Less(x, x)\nreturn z"},
      {shifted + "e = Cos(d)\nz = Less(e, o)\nreturn z", "z = Equal(x, x)\nreturn z"},
      {shifted + "e = Cos(d)\nt = Equal(e, o)\nn = Neg(x)\nz = Where(t, n, x)\nreturn z", "z = Identity(x)\nreturn z"},
      {shifted + "e = Exp(d)\ns = Add(d, o)\nz = Equal(e, s)\nreturn z", "z = Less(x, x)\nreturn z"},
      {shifted + "q = Mul(d, d)\ns = Add(q, o)\ne = Sqrt(s)\nz = Greater(e, o)\nreturn z", "z = Equal(x, x)\nreturn z"},
      {shifted + "e = Exp(d)\nf = Floor(e)\nz = Greater(e, f)\nreturn z", "z = Equal(x, x)\nreturn z"},
      {"constant o = f32[] {1}\ne = Sin(x)\nz = Equal(e, o)\nreturn z", "z = Less(x, x)\nreturn z"},
      {shifted + "e = Cos(d)\nf = Sub(o, e)\nz = Pow(f, x)\nreturn z",
       shifted + "e = Cos(d)\nf = Sub(o, e)\ng = Log(f)\nh = Mul(x, g)\nz = Exp(h)\nreturn z"}};
  for (const auto& [left, right] : rows)
    EXPECT_NE(verify_rule(rule("var x f32[n]", left, right)).verdict, Verdict::Proved) << left;
  // What is 1 more is positive.
  EXPECT_EQ(verify_rule(rule("var x f32[n]", shifted + "e = Cosh(d)\ns = Add(e, o)\nz = Greater(s, o)\nreturn z",
                             "z = Equal(x, x)\nreturn z"))
                .verdict,
            Verdict::Proved);
}

TEST(Hazards, IntegerArithmeticIsUnknown) {
  const Verification v =
      verify_rule(rule("var x i64[n]\nvar y i64[n]", "z = Add(x, y)\nreturn z", "z = Add(y, x)\nreturn z"));
  EXPECT_EQ(v.verdict, Verdict::Unknown);
  EXPECT_NE(v.reason.find("wrap around"), std::string::npos) << v.reason;
}

TEST(Hazards, MovedIntegersAreProved) {
  const Verification v =
      verify_rule(rule("var x i64[a,b]", "y = Transpose(x)\nz = Transpose(y)\nreturn z", "z = Identity(x)\nreturn z"));
  EXPECT_EQ(v.verdict, Verdict::Proved) << v.reason;
}

TEST(Hazards, TooLargeConstantIsUnknown) {
  std::string values = "1.0";
  for (int i = 1; i < 65; i++) values += ", 1.0";
  const Verification v = verify_rule(rule("var x f32[65]", "y = Identity(x)\nreturn y",
                                          "constant c = f32[65] {" + values + "}\ny = Mul(x, c)\nreturn y"));
  EXPECT_EQ(v.verdict, Verdict::Unknown);
  EXPECT_NE(v.reason.find("65 elements"), std::string::npos) << v.reason;
}

}  // namespace
}  // namespace gopt
