// A prefix of leading axes: shapes get it in front, attributes that name axes are shifted, other operators are refused.
#include <gtest/gtest.h>

#include "gopt/rule.h"

namespace gopt {
namespace {

RewriteRule rule(const std::string& variables, const std::string& side) {
  auto rules = parse_rules("rule x\n" + variables + "\nleft\n" + side + "\nright\n" + side + "\nend\n", "test");
  EXPECT_TRUE(rules.ok()) << (rules ? "" : rules.error().message);
  return rules->at(0);
}

struct Row {
  const char* name;
  const char* variables;
  const char* side;
  const char* shape;  // of the output under [p,q]; empty where it is refused
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class Prefix : public ::testing::TestWithParam<Row> {};
TEST_P(Prefix, PutsAxesInFront) {
  const auto prefixed = with_prefix(rule(GetParam().variables, GetParam().side), {symbol("p"), symbol("q")});
  ASSERT_EQ(prefixed.ok(), *GetParam().shape != '\0') << (prefixed ? "" : prefixed.error().message);
  if (!prefixed) return;
  EXPECT_EQ(to_string(*prefixed->left.outputs()[0].value.type().shape), GetParam().shape);
  for (const RuleVariable& v : prefixed->variables) EXPECT_FALSE(v.has_prefix);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, Prefix,
    ::testing::Values(
        Row{"Elementwise", "var x f32[...,a]\nvar b f32[a]", "z = Add(x, b)\nreturn z", "[p,q,a]"},
        Row{"Scalar", "var x f32[...]", "z = Relu(x)\nreturn z", "[p,q]"},
        Row{"MatMul", "var x f32[...,m,k]\nvar u f32[k,n]", "z = MatMul(x, u)\nreturn z", "[p,q,m,n]"},
        Row{"BothOperands", "var x f32[...,m,k]\nvar u f32[...,k,n]", "z = MatMul(x, u)\nreturn z", "[p,q,m,n]"},
        Row{"Transpose", "var x f32[...,a,b]", "z = Transpose(x)\nreturn z", "[p,q,b,a]"},
        Row{"Softmax", "var x f32[...,a,b]", "z = Softmax(x) {axis=0}\nreturn z", "[p,q,a,b]"},
        Row{"Split", "var x f32[...,a+b]", "y, z = Split(x) {axis=-1, split=[a,b]}\nreturn y", "[p,q,a]"},
        Row{"Reduce", "var x f32[...,a,b]", "z = ReduceSum(x) {axes=[0], keepdims=0}\nreturn z", "[p,q,b]"},
        Row{"Reshape", "var x f32[...,a,b]", "z = Reshape(x) {shape=[a*b], allowzero=1}\nreturn z", "[p,q,a*b]"},
        Row{"Pad", "var x f32[...,a]", "z = Pad(x) {pads=[1,2]}\nreturn z", "[p,q,a+3]"},
        Row{"Unsqueeze", "var x f32[...,a]", "z = Unsqueeze(x) {axes=[0]}\nreturn z", "[p,q,1,a]"},
        Row{"FlattenIsRefused", "var x f32[...,a,b]", "z = Flatten(x)\nreturn z", ""},
        Row{"ConvIsRefused", "var x f32[...,n,c,h,w]\nvar k f32[o,c,1,1]", "z = Conv(x, k)\nreturn z", ""},
        Row{"UnprefixedOfHigherRankIsRefused", "var x f32[...,a]\nvar y f32[b,a]", "z = Add(x, y)\nreturn z", ""},
        Row{"UnequalRanksAreRefused", "var x f32[...,a]\nvar y f32[...,b,a]", "z = Add(x, y)\nreturn z", ""},
        Row{"VectorTimesPrefixedMatrixIsRefused", "var x f32[...,a]\nvar y f32[...,a,b]", "z = MatMul(x, y)\nreturn z",
            ""}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gopt
