// What known tools got wrong, and the hazards of tensor rules: for each a rule written to break the proof, and, where
// there is one, the rule nearby that holds, with the condition under which it does.
#include "rule_files.h"

namespace gopt {
namespace {

struct Row {
  const char* name;
  const char* variables;
  const char* left;
  const char* right;
  Verdict verdict;
  const char* condition = "true";
  const char* given = "";
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

RewriteRule rule_of_row(const Row& row) {
  return rule_of(std::string("rule x\n") + row.variables + "\nleft\n" + row.left + "\nright\n" + row.right + "\n" +
                 row.given + "end\n");
}

class Mistake : public ::testing::TestWithParam<Row> {};

TEST_P(Mistake, IsJudged) {
  const Verification v = verify_rule(rule_of_row(GetParam()));
  EXPECT_EQ(to_string(v.verdict), to_string(GetParam().verdict))
      << v.reason << (v.counterexample ? to_string(*v.counterexample) : "");
  if (v.verdict != Verdict::Proved) return;
  EXPECT_EQ(to_string(v.condition), GetParam().condition);
}
TEST_P(Mistake, IsNotProvedByTheProofAloneIfWrong) {
  if (GetParam().verdict == Verdict::Proved) return;
  VerifyOptions options;
  options.samples = 0;
  options.rlimit = 4'000'000;
  RewriteRule rule = rule_of_row(GetParam());
  const Verification v = verify_rule(rule, options);
  if (v.verdict != Verdict::Proved) return;
  EXPECT_FALSE(v.condition == rule.condition);
  rule.condition = v.condition;
  EXPECT_FALSE(find_counterexample(rule, 300, 3).has_value()) << to_string(v.condition);
}

constexpr Verdict kProved = Verdict::Proved, kRefuted = Verdict::Refuted;

INSTANTIATE_TEST_SUITE_P(
    OfKnownTools, Mistake,
    ::testing::Values(Row{"SumIsDoubleOfAnother", "var a f32[n]\nvar b f32[n]\nvar c f32[n]",
                          "s = Add(a,c)\nt = Add(b,b)\nreturn s, t", "s = Add(b,b)\nt = Add(a,c)\nreturn s, t",
                          kRefuted},
                      Row{"ProductCommutes", "var a f32[n,n]\nvar b f32[n,n]", "z = MatMul(a,b)\nreturn z",
                          "z = MatMul(b,a)\nreturn z", kRefuted},
                      Row{"ClampsAreOne", "var x f32[n]", "z = Clip(x) {min=0, max=1}\nreturn z",
                          "z = Clip(x) {min=0, max=6}\nreturn z", kRefuted},
                      Row{"DifferenceOverNothing", "var a f32[n]\nvar b f32[n]\nvar c f32[n]",
                          "p = Sub(a,b)\nq = Sub(c,c)\nz = Div(p,q)\nreturn z",
                          "p = Sub(a,b)\nq = FillLike(c) {value=0}\nz = Div(q,p)\nreturn z", kRefuted},
                      Row{"ConvIgnoresAFactor", "var x f32[n,c,h,w]\nvar u f32[c,c,1,1]\nvar y f32[n,c,h,w]",
                          "a = Conv(x,u)\nz = Mul(a,y)\nreturn z", "z = Conv(x,u)\nreturn z", kRefuted},
                      Row{"ReluOfProductOfRelus", "var x f32[n]\nvar y f32[n]",
                          "a = Relu(x)\nb = Relu(y)\np = Mul(a,b)\nz = Relu(p)\nreturn z",
                          "a = Relu(x)\nb = Relu(y)\nz = Mul(a,b)\nreturn z", kProved}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    OfSizeZero, Mistake,
    ::testing::Values(
        Row{"SumOverNothingIsNotTheElement", "var x f32[m,1]\nvar y f32[n]",
            "e = Expand(x) {shape=[m,n]}\no = FillLike(e) {value=1}\nc = ReduceSum(o) {axes=[1]}\ns = ReduceSum(e) "
            "{axes=[1]}\nz = Div(s,c)\nt = Identity(y)\nreturn z, t",
            "z = Identity(x)\nt = Identity(y)\nreturn z, t", kProved, "n >= 1 or (m == 0)"},
        Row{"CountOverItself", "var x f32[n]\nvar y f32[m]",
            "o = FillLike(x) {value=1}\nc = ReduceSum(o) {axes=[0]}\nq = Div(c,c)\nz = Mul(y,q)\nreturn z",
            "z = Identity(y)\nt = Identity(x)\nreturn z", kProved, "n >= 1 or (m == 0)"},
        Row{"MeanOfNothingMoved", "var x f32[m,1]\nvar y f32[n]", "z = Identity(x)\nt = Identity(y)\nreturn z, t",
            "e = Expand(x) {shape=[m,n]}\nz = ReduceMean(e) {axes=[1]}\nt = Identity(y)\nreturn z, t", kProved,
            "n >= 1"},
        Row{"MaxOfNothingMoved", "var x f32[m,1]\nvar y f32[n]", "z = Identity(x)\nt = Identity(y)\nreturn z, t",
            "e = Expand(x) {shape=[m,n]}\nz = ReduceMax(e) {axes=[1]}\nt = Identity(y)\nreturn z, t", kProved,
            "n >= 1"},
        Row{"MaxOfExpanded", "var x f32[m,1]", "e = Expand(x) {shape=[m,n]}\nz = ReduceMax(e) {axes=[1]}\nreturn z",
            "z = Identity(x)\nreturn z", kProved},
        Row{"ZerosThatMayBeNone", "var x f32[m,n]\nvar y f32[m,k]",
            "o = FillLike(y) {value=0}\nt = Concat(x,o) {axis=1}\nz = ReduceMax(t) {axes=[1]}\nreturn z",
            "s = ReduceMax(x) {axes=[1]}\nz = Relu(s)\nreturn z", kRefuted},
        Row{"ZerosThatAreThere", "var x f32[m,n]\nvar y f32[m,k]",
            "o = FillLike(y) {value=0}\nt = Concat(x,o) {axis=1}\nz = ReduceMax(t) {axes=[1]}\nreturn z",
            "s = ReduceMax(x) {axes=[1]}\nz = Relu(s)\nreturn z", kProved, "k >= 1 and n >= 1", "when k >= 1\n"},
        Row{"ReluThroughMax", "var x f32[m,n]", "s = ReduceMax(x) {axes=[1]}\nz = Relu(s)\nreturn z",
            "r = Relu(x)\nz = ReduceMax(r) {axes=[1]}\nreturn z", kProved},
        Row{"ReluThroughMaxOfNothing", "var x f32[m,a]\nvar y f32[m,b]",
            "t = Concat(x,y) {axis=1}\nr = Relu(t)\nz = ReduceMax(r) {axes=[1]}\nreturn z",
            "s = ReduceMax(x) {axes=[1]}\nt = ReduceMax(y) {axes=[1]}\nu = Max(s,t)\nz = Relu(u)\nreturn z", kProved,
            "a >= 1 and b >= 1"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    OfWindows, Mistake,
    ::testing::Values(
        Row{"NegativePadUndone", "var x f32[n]", "y = Pad(x) {pads=[0,-1]}\nz = Pad(y) {pads=[0,1]}\nreturn z",
            "z = Identity(x)\nreturn z", kRefuted},
        Row{"PadUndone", "var x f32[n]", "y = Pad(x) {pads=[0,1]}\nz = Pad(y) {pads=[0,-1]}\nreturn z",
            "z = Identity(x)\nreturn z", kProved},
        Row{"SamePaddingIsSymmetric", "var x f32[n,c,6]\nvar u f32[o,c,3]",
            "z = Conv(x,u) {auto_pad=\"SAME_UPPER\", strides=[2]}\nreturn z",
            "z = Conv(x,u) {pads=[1,1], strides=[2]}\nreturn z", kRefuted},
        Row{"SamePaddingOfOddExtentIsSymmetric", "var x f32[n,c,7]\nvar u f32[o,c,3]",
            "z = Conv(x,u) {auto_pad=\"SAME_UPPER\", strides=[2]}\nreturn z",
            "z = Conv(x,u) {pads=[1,1], strides=[2]}\nreturn z", kProved},
        Row{"AveragePoolCountsPadding", "var x f32[n,c,h]",
            "z = AveragePool(x) {kernel_shape=[3], pads=[1,1], count_include_pad=1}\nreturn z",
            "z = AveragePool(x) {kernel_shape=[3], pads=[1,1], count_include_pad=0}\nreturn z", kRefuted},
        Row{"OddRowsUnderAStride", "var x f32[n,c,2*h+1]\nvar y f32[n,c,2*g]\nvar u f32[o,c,1]",
            "a = Conv(x,u) {strides=[2]}\nb = Conv(y,u) {strides=[2]}\nz = Concat(a,b) {axis=2}\nreturn z",
            "t = Concat(x,y) {axis=2}\nz = Conv(t,u) {strides=[2]}\nreturn z", kRefuted},
        Row{"EvenRowsUnderAStride", "var x f32[n,c,2*h]\nvar y f32[n,c,g]\nvar u f32[o,c,1]",
            "a = Conv(x,u) {strides=[2]}\nb = Conv(y,u) {strides=[2]}\nz = Concat(a,b) {axis=2}\nreturn z",
            "t = Concat(x,y) {axis=2}\nz = Conv(t,u) {strides=[2]}\nreturn z", kProved},
        Row{"GroupsOfUnequalChannels", "var x f32[n,2*c,h]\nvar u f32[2*o,c,1]\nvar v f32[2*p,c,1]",
            "a = Conv(x,u) {group=2}\nb = Conv(x,v) {group=2}\nz = Concat(a,b) {axis=1}\nreturn z",
            "k = Concat(u,v) {axis=0}\nz = Conv(x,k) {group=2}\nreturn z", kRefuted},
        Row{"BroadcastAlongTheOtherAxis", "var x f32[n,n]\nvar y f32[n]", "z = Add(x,y)\nreturn z",
            "c = Unsqueeze(y) {axes=[1]}\nz = Add(x,c)\nreturn z", kRefuted},
        Row{"BroadcastOfOne", "var x f32[m,n]\nvar y f32[1]", "z = Mul(x,y)\nreturn z",
            "e = Expand(y) {shape=[n]}\nz = Mul(x,e)\nreturn z", kProved}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gopt
