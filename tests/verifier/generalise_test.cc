// Rules for numbers are proved again with symbols, linked where they depend on each other; scalars become variables,
// and leading axes are left open. What comes back is proved, and holds at the old numbers.
#include "rule_files.h"

namespace gopt {
namespace {

std::string text_without_proof(RewriteRule rule) {
  rule.proof.reset();
  rule.marks = {};
  return print_rule(rule);
}

// The most general form of a rule that is written without its name and end.
RewriteRule general_form(const std::string& text) {
  const RewriteRule rule = rule_of("rule x\n" + text + "end\n");
  const std::vector<RewriteRule> forms = generalise(rule);
  for (const RewriteRule& form : forms) {
    EXPECT_TRUE(form.proof.has_value()) << print_rule(form);
    EXPECT_EQ(verify_rule(form).verdict, Verdict::Proved) << print_rule(form);
  }
  return forms.at(0);
}

void expect_form(const std::string& rule, const std::string& expected) {
  EXPECT_EQ(text_without_proof(general_form(rule)), text_without_proof(rule_of("rule x\n" + expected + "end\n")));
}

TEST(Generalise, WindowsOfAnyKind) {
  expect_form(
      "var x f32[n,c,h]\nvar u f32[o,c,3]\nvar v f32[q,c,3]\nleft\nuv = Concat(u, v) {axis=0}\n"
      "z = Conv(x, uv) {pads=[1,1]}\nreturn z\nright\na = Conv(x, u) {pads=[1,1]}\nb = Conv(x, v) {pads=[1,1]}\n"
      "z = Concat(a, b) {axis=1}\nreturn z\n",
      "var x f32[n,c,h]\nvar u f32[o,c,k]\nvar v f32[q,c,k]\nleft\nuv = Concat(u, v) {axis=0}\n"
      "z = Conv(x, uv) {pads=[p,p1], dilations=[d], strides=[s]}\nreturn z\nright\n"
      "a = Conv(x, u) {pads=[p,p1], dilations=[d], strides=[s]}\n"
      "b = Conv(x, v) {pads=[p,p1], dilations=[d], strides=[s]}\nz = Concat(a, b) {axis=1}\nreturn z\n");
}

TEST(Generalise, PadsOfAnEnlargedKernelFollow) {
  const RewriteRule form = general_form(
      "var x f32[n,c,h]\nvar u f32[o,c,1]\nleft\nz = Conv(x, u)\nreturn z\nright\n"
      "v = Pad(u) {pads=[0,0,1,0,0,1]}\nz = Conv(x, v) {pads=[1,1]}\nreturn z\n");
  const std::string text = print_rule(form);
  EXPECT_NE(text.find("var u f32[o,c,k]"), std::string::npos) << text;
  EXPECT_NE(text.find("pads=[p,p1], strides=[s]"), std::string::npos) << text;
  EXPECT_NE(text.find("strides=[s]}\n    return z\n  right"), std::string::npos) << text;
}

TEST(Generalise, PartsOfASplitAndTheirExtent) {
  expect_form(
      "var x f32[m,5]\nleft\na, b = Split(x) {axis=1, split=[2,3]}\nc = Relu(a)\nd = Relu(b)\nreturn c, d\nright\n"
      "y = Relu(x)\nc, d = Split(y) {axis=1, split=[2,3]}\nreturn c, d\n",
      "var x f32[...,m,s+s1]\nleft\na, b = Split(x) {axis=1, split=[s,s1]}\nc = Relu(a)\nd = Relu(b)\nreturn c, d\n"
      "right\ny = Relu(x)\nc, d = Split(y) {axis=1, split=[s,s1]}\nreturn c, d\n");
}

TEST(Generalise, GroupsAndWhatTheyDivide) {
  const std::string text = print_rule(
      general_form("var x f32[n,2*c,h]\nvar u f32[2*o,c,1]\nleft\na = Conv(x, u) {group=2}\nz = Neg(a)\nreturn z\n"
                   "right\na = Neg(x)\nz = Conv(a, u) {group=2}\nreturn z\n"));
  EXPECT_NE(text.find("group=g"), std::string::npos) << text;
}

TEST(Generalise, ScalarsBecomeVariables) {
  expect_form(
      "var x f32[a,b]\nleft\nt = Transpose(x) {perm=[1,0]}\ny = LeakyRelu(t) {alpha=0.1}\nreturn y\nright\n"
      "t = LeakyRelu(x) {alpha=0.1}\ny = Transpose(t) {perm=[1,0]}\nreturn y\n",
      "var x f32[...,a,b]\nfloat c\nleft\nt = Transpose(x) {perm=[1,0]}\ny = LeakyRelu(t) {alpha=$c}\nreturn y\nright\n"
      "t = LeakyRelu(x) {alpha=$c}\ny = Transpose(t) {perm=[1,0]}\nreturn y\n");
  const RewriteRule scaled = general_form(
      "var x f32[n,k]\nvar w f32[k,m]\nleft\nconstant h = f32[] {0.125}\ny = MatMul(x, w)\nz = Mul(y, h)\nreturn z\n"
      "right\nconstant h = f32[] {0.125}\nv = Mul(x, h)\nz = MatMul(v, w)\nreturn z\n");
  ASSERT_EQ(scaled.variables.size(), 3u);
  EXPECT_EQ(scaled.variables[2].kind, VariableKind::Weight);
}

TEST(Generalise, NumbersThatMatterStay) {
  // A mean of two is half of their sum, and nothing else of it.
  const RewriteRule half = general_form(
      "var x f32[n]\nvar y f32[n]\nleft\nz = Mean(x, y)\nreturn z\nright\nconstant h = f32[] {0.5}\ns = Add(x, y)\n"
      "z = Mul(s, h)\nreturn z\n");
  EXPECT_EQ(half.variables.size(), 2u);
  EXPECT_NE(print_rule(half).find("{0.5}"), std::string::npos);
  // A slope of 0 makes relu; any other does not.
  const RewriteRule slope =
      general_form("var x f32[n]\nleft\nz = LeakyRelu(x) {alpha=0}\nreturn z\nright\nz = Relu(x)\nreturn z\n");
  EXPECT_TRUE(float_variables(slope).empty());
}

TEST(Generalise, LeadingAxesInEveryWay) {
  const std::vector<RewriteRule> forms = generalise(
      rule_of("rule x\nvar x f32[m,k]\nvar u f32[k,a]\nvar v f32[k,a]\nleft\ny = MatMul(x, u)\nz = MatMul(x, v)\n"
              "s = Add(y, z)\nreturn s\nright\nw = Add(u, v)\ns = MatMul(x, w)\nreturn s\nend\n"));
  std::set<std::string> prefixed;
  for (const RewriteRule& form : forms) {
    std::string names;
    for (const RuleVariable& v : form.variables) names += v.has_prefix ? v.name : "";
    prefixed.insert(names);
    EXPECT_TRUE(form.proof.has_value());
  }
  EXPECT_TRUE(prefixed.count("xuv"));
  EXPECT_TRUE(prefixed.count("x"));
}

TEST(Generalise, AFalseRuleHasNoForm) {
  const std::vector<RewriteRule> forms =
      generalise(rule_of("rule x\nvar x f32[n]\nleft\ny = Relu(x)\nreturn y\nright\ny = Neg(x)\nreturn y\nend\n"));
  ASSERT_EQ(forms.size(), 1u);
  EXPECT_FALSE(forms[0].proof.has_value());
}

}  // namespace
}  // namespace gopt
