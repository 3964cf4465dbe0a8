// Partial functions: at every size, and at every position, both sides must apply them to the same values.
#include "rule_files.h"

namespace gopt {
namespace {

RewriteRule rule(const std::string& variables, const std::string& left, const std::string& right) {
  return rule_of("rule x\n" + variables + "\nleft\n" + left + "\nright\n" + right + "\nend\n");
}
// The proof alone, without the samples.
Verification proved_alone(const RewriteRule& r) {
  VerifyOptions options;
  options.samples = 0;
  return verify_rule(r, options);
}

const RewriteRule sum_of_quotients =
    rule("var x f32[n]\nvar c f32[]", "y = Div(x,c)\nz = ReduceSum(y) {axes=[0]}\nreturn z",
         "s = ReduceSum(x) {axes=[0]}\nz = Div(s,c)\nreturn z");

// Over no element nothing is divided on the left, so that c may be 0 there.
TEST(Demands, QuotientsOfASumNeedAnElement) {
  for (const Verification& v : {verify_rule(sum_of_quotients), proved_alone(sum_of_quotients)}) {
    EXPECT_EQ(v.verdict, Verdict::Proved) << v.reason;
    EXPECT_EQ(to_string(v.condition), "n >= 1");
  }
}
TEST(Demands, QuotientOfASumNeedsAnElement) {
  RewriteRule turned = sum_of_quotients;
  std::swap(turned.left, turned.right);
  for (const Verification& v : {verify_rule(turned), proved_alone(turned)}) {
    EXPECT_EQ(v.verdict, Verdict::Proved) << v.reason;
    EXPECT_EQ(to_string(v.condition), "n >= 1");
  }
}
TEST(Demands, RootOfASumNeedsAnElement) {
  const Verification v = proved_alone(rule("var x f32[m,k]\nvar u f32[k,n]\nvar c f32[]",
                                           "r = Sqrt(c)\ny = Mul(x,r)\nz = MatMul(y,u)\nreturn z",
                                           "r = Sqrt(c)\ny = MatMul(x,u)\nz = Mul(y,r)\nreturn z"));
  EXPECT_EQ(v.verdict, Verdict::Proved) << v.reason;
  EXPECT_EQ(to_string(v.condition), "k >= 1");
}

// The second part of the left side divides by nothing.
TEST(Demands, QuotientInAnotherPartIsNotEnough) {
  const RewriteRule r =
      rule("var x f32[n]\nvar y f32[m]\nvar c f32[]",
           "q = Div(x,c)\no = FillLike(y) {value=0}\nz = Concat(q,o) {axis=0}\nreturn z",
           "q = Div(x,c)\no = FillLike(y) {value=0}\np = Div(o,c)\nz = Concat(q,p) {axis=0}\nreturn z");
  EXPECT_EQ(verify_rule(r).verdict, Verdict::Refuted);
  EXPECT_NE(proved_alone(r).verdict, Verdict::Proved);
}
TEST(Demands, QuotientInPaddingIsNotEnough) {
  const RewriteRule r = rule("var x f32[n]\nvar c f32[]", "q = Div(x,c)\nz = Pad(q) {pads=[1,1]}\nreturn z",
                             "p = Pad(x) {pads=[1,1]}\nz = Div(p,c)\nreturn z");
  EXPECT_EQ(verify_rule(r).verdict, Verdict::Refuted);
  EXPECT_NE(proved_alone(r).verdict, Verdict::Proved);
}
TEST(Demands, DivisionByACountThatMayBeZero) {
  const RewriteRule r = rule("var x f32[n]\nvar y f32[m]", "z = FillLike(y) {value=0}\nt = Identity(x)\nreturn z, t",
                             "f = FillLike(x) {value=1}\nc = ReduceSum(f) {axes=[0]}\no = FillLike(y) {value=0}\n"
                             "z = Div(o,c)\nt = Identity(x)\nreturn z, t");
  const Verification v = verify_rule(r);
  EXPECT_EQ(v.verdict, Verdict::Proved) << v.reason;
  EXPECT_EQ(to_string(v.condition), "n >= 1 or (m == 0)");
  EXPECT_NE(proved_alone(r).verdict, Verdict::Proved);
}

// What the left side alone applies fails where no sample looks: at 37.3, below -1000, from ten elements on.
TEST(Demands, WhatFailsFarFromSamplesIsNotProved) {
  const std::string x = "var x f32[]", xy = "var x f32[]\nvar y f32[]";
  const RewriteRule rules[] = {
      rule(x, "constant c = f32[] {37.3}\nd = Sub(x,c)\nq = Reciprocal(d)\nz = Sub(q,q)\nreturn z",
           "z = FillLike(x) {value=0}\nreturn z"),
      rule(x, "constant c = f32[] {1000.0}\nd = Add(x,c)\nl = Log(d)\nz = Exp(l)\nreturn z",
           "constant c = f32[] {1000.0}\nz = Add(x,c)\nreturn z"),
      rule(xy, "constant c = f32[] {1000.0}\nd = Add(x,c)\nl = Log(d)\na = Add(y,l)\nz = Sub(a,l)\nreturn z",
           "z = Identity(y)\nreturn z"),
      rule(x, "constant c = f32[] {1000.0}\nd = Add(x,c)\ns = Sqrt(d)\nz = Sub(s,s)\nreturn z",
           "z = FillLike(x) {value=0}\nreturn z"),
      rule(x, "constant c = f32[] {0.001}\nd = Mul(x,c)\na = Asin(d)\nz = Sub(a,a)\nreturn z",
           "z = FillLike(x) {value=0}\nreturn z"),
      rule("var x f32[n]\nvar y f32[]",
           "constant c = f32[] {9.5}\nf = FillLike(x) {value=1}\ns = ReduceSum(f) {axes=[0], keepdims=0}\n"
           "d = Sub(c,s)\nr = Sqrt(d)\no = Sub(r,r)\nz = Add(o,y)\nreturn z",
           "z = Identity(y)\nreturn z"),
  };
  for (const RewriteRule& r : rules) {
    EXPECT_NE(verify_rule(r).verdict, Verdict::Proved) << print_rule(r);
    EXPECT_NE(proved_alone(r).verdict, Verdict::Proved) << print_rule(r);
  }
}
TEST(Demands, QuotientsOfElementsAreLeftToSamples) {
  const std::string xyw = "var x f32[]\nvar y f32[]\nvar w f32[]";
  EXPECT_EQ(
      verify_rule(rule(xyw, "q = Div(y,w)\nz = Div(x,q)\nreturn z", "p = Mul(x,w)\nz = Div(p,y)\nreturn z")).verdict,
      Verdict::Proved);
  EXPECT_EQ(
      verify_rule(rule("var x f32[]\nvar y f32[]", "p = Mul(x,y)\nz = Div(p,y)\nreturn z", "z = Identity(x)\nreturn z"))
          .verdict,
      Verdict::Refuted);
}

}  // namespace
}  // namespace gopt
