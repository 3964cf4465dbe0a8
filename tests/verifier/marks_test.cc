// What floats make of rules that hold over the reals: which marks they get, and that a mark is shown by inputs on which
// the sides do differ.
#include <algorithm>
#include <cmath>

#include "gopt/interpreter.h"
#include "rule_files.h"
#include "rules/rule_meaning.h"

namespace gopt {

using namespace verifier;

namespace {

struct Row {
  const char* name;
  const char* variables;
  const char* left;
  const char* right;
  const char* unsafe;  // its marks that are not safe, in the table's order
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

std::string unsafe_marks(const RuleMarks& marks) {
  std::string text;
  for (const MarkInfo& mark : all_marks())
    if (!mark.is_safe && marks.*(mark.flag)) text += (text.empty() ? "" : " ") + std::string(mark.name);
  return text;
}

RewriteRule stated(const Row& row) {
  return rule_of(std::string("rule x\n") + row.variables + "\nleft\n" + row.left + "\nright\n" + row.right + "\nend\n");
}

TEST(SafeMarks, DigitsThatAreRoundedTwiceAreSeen) {
  const RewriteRule rule = stated({"", "var x f32[n]", "constant c = f32[] {1}\na = Sub(x, c)\nz = Sub(a, c)\nreturn z",
                                   "constant c = f32[] {2}\nz = Sub(x, c)\nreturn z", ""});
  EXPECT_TRUE(verify_rule(rule).marks.reassociates);
}

class Marks : public ::testing::TestWithParam<Row> {};

TEST_P(Marks, AreTheseAndAreShown) {
  const RewriteRule rule = stated(GetParam());
  const Verification v = verify_rule(rule);
  ASSERT_EQ(v.verdict, Verdict::Proved) << v.reason;
  std::string shown;
  for (const MarkExample& e : v.mark_examples) shown += to_string(e) + "\n";
  EXPECT_EQ(unsafe_marks(v.marks), GetParam().unsafe) << shown;
  for (const MarkInfo& mark : all_marks()) {
    const auto count = std::count_if(v.mark_examples.begin(), v.mark_examples.end(),
                                     [&](const MarkExample& e) { return e.mark == &mark; });
    EXPECT_EQ(count, !mark.is_safe && v.marks.*(mark.flag) ? 1 : 0) << mark.name;
  }
}

// The interpreter, which shares nothing with what observes the marks but the definitions, gives both values.
TEST_P(Marks, ExamplesAreWhatTheInterpreterComputes) {
  const RewriteRule rule = stated(GetParam());
  for (const MarkExample& e : verify_rule(rule).mark_examples) {
    Substitution sizes;
    for (const auto& [name, value] : e.example.sizes) sizes[symbol_atom(name)] = Index(value);
    const auto closed = with_prefix(rule, {});
    ASSERT_TRUE(closed.ok());
    const auto typed = with_real_type(*closed, e.type);
    ASSERT_TRUE(typed.ok());
    const auto stated = with_sizes(*typed, sizes);
    ASSERT_TRUE(stated.ok()) << stated.error().message;
    double values[2];
    for (int side = 0; side < 2; side++) {
      const Graph& graph = side == 0 ? stated->left : stated->right;
      std::map<std::string, Tensor> inputs = e.example.inputs;
      const auto outputs = interpret(graph, inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message;
      const Tensor& tensor = (*outputs)[static_cast<size_t>(e.example.output)];
      int64_t flat = 0;
      for (size_t axis = 0; axis < e.example.position.size(); axis++)
        flat = flat * tensor.dims()[axis] + e.example.position[axis];
      values[side] = tensor.to_doubles()[static_cast<size_t>(flat)];
    }
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    EXPECT_TRUE(same(values[0], e.example.left)) << to_string(e) << ": " << values[0];
    EXPECT_TRUE(same(values[1], e.example.right)) << to_string(e) << ": " << values[1];
  }
}

INSTANTIATE_TEST_SUITE_P(
    FiniteOnly, Marks,
    ::testing::Values(Row{"EqualToItself", "var x f32[n]", "z = Equal(x, x)\nreturn z",
                          "a = Sub(x, x)\nconstant o = f32[] {0}\nb = Sub(o, o)\nz = GreaterOrEqual(b, b)\nw = "
                          "FillLike(x) {value=0}\ny = "
                          "Equal(w, w)\nreturn y",
                          "finite-only"},
                      Row{"NotLessIsNotGreaterOrEqual", "var x f32[n]\nvar y f32[n]",
                          "a = Less(x, y)\nz = Not(a)\nreturn z", "z = GreaterOrEqual(x, y)\nreturn z", "finite-only"},
                      Row{"AtLeastItself", "var x f32[n]", "a = GreaterOrEqual(x, x)\nz = And(a, a)\nreturn z",
                          "w = FillLike(x) {value=0}\nz = Equal(w, w)\nreturn z", "finite-only"},
                      Row{"SignOfZeroTimes", "var x f32[n]",
                          "constant c = f32[] {0}\na = Mul(x, c)\nb = Add(a, x)\nz = Sign(b)\nreturn z",
                          "z = Sign(x)\nreturn z", "finite-only"},
                      Row{"InfinityMinusInfinity", "var x f32[n]", "z = Sub(x, x)\nreturn z",
                          "z = FillLike(x) {value=0}\nreturn z", "finite-only"},
                      // Of windows side by side, one that has the infinity and one that does not.
                      Row{"WindowsThatArePadded", "var x f32[b,i,h,w]\nvar w f32[o,i,3,1] weight",
                          "a = AveragePool(x) {kernel_shape=[3,1]}\nz = Conv(a, w)\nreturn z",
                          "a = AveragePool(x) {count_include_pad=1, kernel_shape=[3,1], pads=[1,0,1,0]}\n"
                          "p = Pad(w) {pads=[0,0,1,0,0,0,1,0]}\nz = Conv(a, p)\nreturn z",
                          "finite-only"},
                      // 0 against infinity times 0, where a weight is below 0.
                      Row{"ReluOfAWeight", "var x f32[n]\nvar w f32[n] weight",
                          "a = Relu(x)\nb = Mul(a, w)\nz = Relu(b)\nreturn z",
                          "a = Relu(x)\nb = Relu(w)\nz = Mul(a, b)\nreturn z", "finite-only"},
                      // Infinite, or no number, by the signs of both: the left side is NaN then.
                      Row{"WeightsOfAnySign", "var x f32[n]\nvar u f32[n] weight\nvar v f32[n] weight",
                          "a = Mul(x, u)\nz = Mul(a, v)\nreturn z", "a = Mul(u, v)\nz = Mul(x, a)\nreturn z", ""},
                      Row{"SquareOfTheRoot", "var x f32[n]", "a = Abs(x)\nb = Neg(a)\nz = Abs(b)\nreturn z",
                          "z = Abs(x)\nreturn z", ""}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Range, Marks,
    ::testing::Values(Row{"SoftmaxWithoutItsMaximum", "var x f32[m,n]", "z = Softmax(x) {axis=1}\nreturn z",
                          "e = Exp(x)\ns = ReduceSum(e) {axes=[1]}\nz = Div(e, s)\nreturn z",
                          "finite-only loses-range"},
                      Row{"SoftmaxWithItsMaximum", "var x f32[m,n]",
                          "e = Exp(x)\ns = ReduceSum(e) {axes=[1]}\nz = Div(e, s)\nreturn z",
                          "z = Softmax(x) {axis=1}\nreturn z", "finite-only"},
                      Row{"ProductsThatOverflow", "var x f32[n]", "z = Relu(x)\nreturn z",
                          "constant c = f32[] {1e38}\na = Mul(x, c)\nb = Mul(a, c)\nd = Div(b, c)\ne = Div(d, c)\nz = "
                          "Relu(e)\nreturn z",
                          "loses-range"},
                      Row{"ProductsThatNoLongerOverflow", "var x f32[n]",
                          "constant c = f32[] {1e38}\na = Mul(x, c)\nb = Mul(a, c)\nd = Div(b, c)\ne = Div(d, c)\nz = "
                          "Relu(e)\nreturn z",
                          "z = Relu(x)\nreturn z", ""},
                      Row{"RootOfASquare", "var x f32[n]", "z = Abs(x)\nreturn z",
                          "s = Mul(x, x)\nz = Sqrt(s)\nreturn z", "loses-range"},
                      Row{"LogSumExpWithoutItsMaximum", "var x f32[m,n]", "z = ReduceLogSumExp(x) {axes=[1]}\nreturn z",
                          "e = Exp(x)\ns = ReduceSum(e) {axes=[1]}\nz = Log(s)\nreturn z", "loses-range cancels"},
                      Row{"ProductsThatOverflowInDoublePrecision", "var x f64[n]", "z = Relu(x)\nreturn z",
                          "constant c = f64[] {1e200}\na = Mul(x, c)\nb = Mul(a, c)\nd = Div(b, c)\ne = Div(d, c)\nz = "
                          "Relu(e)\nreturn z",
                          "finite-only loses-range"},
                      Row{"WeightsFolded", "var x f32[m,k]\nvar s f32[] weight\nvar w f32[k,n] weight",
                          "a = Mul(x, s)\nz = MatMul(a, w)\nreturn z", "b = Mul(s, w)\nz = MatMul(x, b)\nreturn z",
                          ""}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Digits, Marks,
    ::testing::Values(
        Row{"VarianceAsADifference", "var x f32[m,n]",
            "u = ReduceMean(x) {axes=[1]}\nd = Sub(x, u)\ns = Mul(d, d)\nz = ReduceMean(s) {axes=[1]}\nreturn z",
            "s = Mul(x, x)\na = ReduceMean(s) {axes=[1]}\nu = ReduceMean(x) {axes=[1]}\nb = Mul(u, u)\nz = Sub(a, "
            "b)\nreturn "
            "z",
            "loses-range cancels"},
        Row{"AddedAndTakenAway", "var x f32[n]\nvar y f32[n]", "z = Mul(x, y)\nreturn z",
            "p = Mul(x, y)\ns = Add(p, y)\nz = Sub(s, y)\nreturn z", "finite-only cancels"},
        Row{"VarianceOfWhatIsBounded", "var x f32[m,n]",
            "t = Tanh(x)\nu = ReduceMean(t) {axes=[1]}\nd = Sub(t, u)\ns = Mul(d, d)\nz = ReduceMean(s) "
            "{axes=[1]}\nreturn z",
            "t = Tanh(x)\ns = Mul(t, t)\na = ReduceMean(s) {axes=[1]}\nu = ReduceMean(t) {axes=[1]}\nb = Mul(u, "
            "u)\nz = Sub(a, b)\nreturn z",
            "cancels"},
        Row{"SquareOfADifferenceExpanded", "var x f32[n]\nvar y f32[n]",
            "a = Sigmoid(x)\nb = Sigmoid(y)\nd = Sub(a, b)\nz = Mul(d, d)\nreturn z",
            "a = Sigmoid(x)\nb = Sigmoid(y)\nc = Mul(a, b)\nd = Mul(a, a)\ne = Mul(b, b)\nf = Add(c, c)\ng = "
            "Sub(d, f)\nz = Add(g, e)\nreturn z",
            "cancels"},
        Row{"SumsInAnotherOrder", "var x f32[n]\nvar y f32[n]\nvar z f32[n]", "a = Add(x, y)\nb = Add(a, z)\nreturn b",
            "a = Add(y, z)\nb = Add(x, a)\nreturn b", ""},
        Row{"Distributed", "var x f32[m,k]\nvar u f32[k,n]\nvar v f32[k,n]",
            "a = MatMul(x, u)\nb = MatMul(x, v)\nz = Add(a, "
            "b)\nreturn z",
            "w = Add(u, v)\nz = MatMul(x, w)\nreturn z", "finite-only"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Rounding, Marks,
    ::testing::Values(
        Row{"RoundingByALargeNumber", "var x f32[n]",
            "constant c = f32[] {12582912}\na = Add(x, c)\nb = Sub(a, c)\nz = Relu(b)\nreturn z",
            "z = Relu(x)\nreturn z", "drops-rounding"},
        Row{"RoundingBehindAFunction", "var x f32[n]",
            "constant c = f32[] {12582912}\na = Add(x, c)\nb = Sub(a, c)\nz = Exp(b)\nreturn z", "z = Exp(x)\nreturn z",
            "drops-rounding"},
        Row{"RoundingBehindADivision", "var x f32[n]",
            "constant c = f32[] {12582912}\nconstant t = f32[] {2}\ne = Sigmoid(x)\na = Add(e, c)\nb = Sub(a, c)\nd = "
            "Add(b, t)\nz = Reciprocal(d)\nreturn z",
            "constant t = f32[] {2}\ne = Sigmoid(x)\nd = Add(e, t)\nz = Reciprocal(d)\nreturn z", "drops-rounding"},
        Row{"RoundingBehindAComparison", "var x f32[n]\nvar y f32[n]\nvar k f32[n]",
            "a = Add(x, k)\nb = Add(y, k)\nz = Less(a, b)\nreturn z", "z = Less(x, y)\nreturn z",
            "finite-only drops-rounding"},
        Row{"PartOfTwoSum", "var a f32[n]\nvar b f32[n]", "s = Add(a, b)\nt = Sub(s, a)\nz = Neg(t)\nreturn z",
            "z = Neg(b)\nreturn z", "finite-only drops-rounding"},
        Row{"TwoSum", "var a f32[n]\nvar b f32[n]",
            "s = Add(a, b)\nt = Sub(s, a)\nk = Sub(s, t)\nd = Sub(a, k)\nf = Sub(b, t)\ne = Add(d, f)\nreturn e",
            "e = FillLike(a) {value=0}\nreturn e", "finite-only drops-rounding"},
        Row{"SplitOfWhatIsBounded", "var x f32[n]",
            "constant c = f32[] {4097}\ns = Sigmoid(x)\nt = Mul(s, c)\nd = Sub(t, s)\nz = Sub(t, d)\nreturn z",
            "z = Sigmoid(x)\nreturn z", "drops-rounding"},
        Row{"StepOfKahansSum", "var s f32[n]\nvar y f32[n]", "t = Add(s, y)\nd = Sub(t, s)\nc = Sub(d, y)\nreturn c",
            "c = FillLike(s) {value=0}\nreturn c", "finite-only drops-rounding"},
        Row{"FactorTakenOut", "var x f32[n]",
            "constant c = f32[] {3}\na = Mul(x, c)\nb = Div(a, c)\nz = Relu(b)\nreturn z", "z = Relu(x)\nreturn z",
            ""}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Narrower, Marks,
    ::testing::Values(
        Row{"ProductInDoublePrecision", "var x f32[m,k]\nvar y f32[k,n]",
            "a = Cast(x) {to=11}\nb = Cast(y) {to=11}\nz = MatMul(a, b)\nreturn z",
            "c = MatMul(x, y)\nz = Cast(c) {to=11}\nreturn z", "loses-range narrows"},
        Row{"SumInSinglePrecision", "var x f32[m,n]\ntypes f16",
            "a = Cast(x) {to=1}\nz = ReduceSum(a) {axes=[1]}\nreturn z",
            "c = ReduceSum(x) {axes=[1]}\nz = Cast(c) {to=1}\nreturn z", "narrows"},
        Row{"ProductInDoublePrecisionCompared", "var x f32[m,k]\nvar y f32[k,n]\nvar w f32[m,n]",
            "a = Cast(x) {to=11}\nb = Cast(y) {to=11}\nc = Cast(w) {to=11}\ns = MatMul(a, b)\nz = Less(s, c)\nreturn z",
            "s = MatMul(x, y)\nz = Less(s, w)\nreturn z", "narrows"},
        Row{"SumInDoublePrecisionCompared", "var x f32[n]\nvar y f32[n]\nvar w f32[n]",
            "a = Cast(x) {to=11}\nb = Cast(y) {to=11}\nc = Cast(w) {to=11}\ns = Add(a, b)\nz = Less(s, c)\nreturn z",
            "s = Add(x, y)\nz = Less(s, w)\nreturn z", "narrows"},
        Row{"MaximumInDoublePrecision", "var x f32[m,n]", "a = Cast(x) {to=11}\nz = ReduceMax(a) {axes=[1]}\nreturn z",
            "c = ReduceMax(x) {axes=[1]}\nz = Cast(c) {to=11}\nreturn z", ""},
        Row{"ProductInDoublePrecisionKept", "var x f32[m,k]\nvar y f32[m,k]",
            "c = Mul(x, y)\nz = Cast(c) {to=11}\nreturn z",
            "a = Cast(x) {to=11}\nb = Cast(y) {to=11}\nz = Mul(a, b)\nreturn z", ""}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gopt
