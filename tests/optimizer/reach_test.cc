// Shapes of real models that the shipped rules have to reach: siblings with what follows them, and every elementwise
// operator of the table behind the parts of a Split.
#include <gtest/gtest.h>

#include <random>

#include "count_cost.h"
#include "gopt/interpreter.h"
#include "gopt/text.h"
#include "random_graph.h"
#include "rules.h"

namespace gopt {
namespace {

std::vector<RewriteRule> rules_of(const std::vector<std::string>& files) {
  std::vector<RewriteRule> rules;
  for (const std::string& file : files) {
    const auto database = load_rules(GOPT_RULES_DIR "/" + file + ".rules");
    if (!database.ok()) throw std::runtime_error(database.error().message);
    rules.insert(rules.end(), database->rules.begin(), database->rules.end());
  }
  return rules;
}

const std::vector<RewriteRule>& applied_by_default() {
  static const std::vector<RewriteRule> rules = rules_of({"hand", "core", "elementwise", "ranks", "siblings"});
  return rules;
}
const std::vector<RewriteRule>& of_elementwise_operators() {
  static const std::vector<RewriteRule> rules = rules_of({"elementwise"});
  return rules;
}

Graph graph_of(const std::string& lines) {
  const auto graph = parse_graph("graph g\n" + lines + "end\n");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message) << lines;
  return graph.ok() ? *graph : Graph();
}

Graph optimized(const Graph& graph, const std::vector<RewriteRule>& rules = applied_by_default()) {
  CountCost costs;
  SearchOptions options = untimed();
  options.max_steps = 40;
  const auto result = optimize(graph, rules, costs, options);
  EXPECT_TRUE(result.ok());
  return result.ok() ? result->graph : graph;
}

void expect_same_values(const Graph& before, const Graph& after) {
  std::mt19937_64 random(5);
  const auto inputs = random_inputs(random, before);
  const auto a = interpret(before, inputs), b = interpret(after, inputs);
  ASSERT_TRUE(a.ok() && b.ok());
  for (size_t k = 0; k < a->size(); k++) {
    const auto x = (*a)[k].to_doubles(), y = (*b)[k].to_doubles();
    ASSERT_EQ((*a)[k].dims(), (*b)[k].dims());
    for (size_t i = 0; i < x.size(); i++) ASSERT_NEAR(x[i], y[i], 1e-4);
  }
}

int count_of(const Graph& graph, OpKind op) {
  int count = 0;
  for (size_t k = 0; k < graph.nodes().size(); k++)
    count += graph.nodes()[k]->is(op) && !graph.depends_on_weights_only(static_cast<NodeId>(k));
  return count;
}

// A constant of these extents.
std::string constant(const std::string& name, const std::vector<int>& extents) {
  std::string shape, values;
  int count = 1;
  for (const int extent : extents) {
    shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    count *= extent;
  }
  for (int k = 0; k < count; k++)
    values += (k ? "," : "") + std::to_string((k * 7 + static_cast<int>(name[0])) % 5 - 2);
  return "  constant " + name + " = f32[" + shape + "] {" + values + "}\n";
}

TEST(Reach, ConvolutionsOfOneImageWithBiasAndReluBecomeOne) {
  std::string lines = "  input x : f32[1,3,4,4]\n" + constant("k", {2, 3, 1, 1}) + constant("l", {4, 3, 1, 1}) +
                      constant("m", {1, 3, 1, 1}) + constant("a", {2}) + constant("b", {4}) + constant("c", {1}) +
                      "  y = Conv(x, k, a)\n  z = Conv(x, l, b)\n  w = Conv(x, m, c)\n"
                      "  p = Relu(y)\n  q = Relu(z)\n  r = Relu(w)\n  output p = p\n  output q = q\n  output r = r\n";
  const Graph graph = graph_of(lines), after = optimized(graph);
  EXPECT_EQ(count_of(after, OpKind::Conv), 1);
  EXPECT_EQ(count_of(after, OpKind::Relu), 1);
  expect_same_values(graph, after);
}

TEST(Reach, GatedConvolutionsOfASignalBecomeOne) {
  const Graph graph = graph_of("  input x : f32[1,3,9]\n" + constant("k", {2, 3, 3}) + constant("l", {2, 3, 3}) +
                               constant("a", {2}) + constant("b", {2}) +
                               "  y = Conv(x, k, a) {dilations=[2]}\n  z = Conv(x, l, b) {dilations=[2]}\n"
                               "  t = Tanh(y)\n  s = Sigmoid(z)\n  u = Mul(t, s)\n  output u = u\n");
  const Graph after = optimized(graph);
  EXPECT_EQ(count_of(after, OpKind::Conv), 1);
  expect_same_values(graph, after);
}

// As in ConvNeXt: a product over pixels whose result becomes an image, is scaled and added.
TEST(Reach, AProductOverPixelsBecomesAConvolutionThatTakesTheScale) {
  const Graph graph = graph_of("  input x : f32[1,2,3,4]\n  input z : f32[1,5,2,3]\n" + constant("k", {4, 5}) +
                               constant("a", {5}) + constant("g", {5, 1, 1}) +
                               "  m = MatMul(x, k)\n  s = Add(m, a)\n  t = Transpose(s) {perm=[0,3,1,2]}\n"
                               "  u = Mul(t, g)\n  v = Add(u, z)\n  output v = v\n");
  const Graph after = optimized(graph);
  EXPECT_EQ(count_of(after, OpKind::Conv), 1);
  EXPECT_EQ(count_of(after, OpKind::Mul), 0);
  expect_same_values(graph, after);
}

// As in Swin: scores of windows, to which a bias of each head and a mask of each window are added; of two images.
TEST(Reach, ABiasAndAMaskOfWindowsAreAddedAtOnce) {
  const Graph graph = graph_of(
      "  input x : f32[6,2,2,2]\n  constant b = f32[1,2,2,2] {1,2,3,1,2,3,1,2}\n"
      "  constant m = f32[1,3,1,2,2] {0,0,0,0,0,-9,0,-9,-9,-9,0,0}\n"
      "  y = Add(x, b)\n  r = Reshape(y) {shape=[2,3,2,2,2]}\n  t = Add(r, m)\n"
      "  z = Reshape(t) {shape=[6,2,2,2]}\n  s = Softmax(z) {axis=3}\n  output s = s\n");
  const Graph after = optimized(graph);
  EXPECT_EQ(count_of(after, OpKind::Add), 1);
  EXPECT_EQ(count_of(after, OpKind::Reshape), 0);
  expect_same_values(graph, after);
}

TEST(Reach, ConvolutionsOfWhichOneHasABiasBecomeOne) {
  const Graph graph =
      graph_of("  input x : f32[1,3,4,4]\n" + constant("k", {2, 3, 1, 1}) + constant("l", {3, 3, 1, 1}) +
               constant("a", {2}) + "  y = Conv(x, k, a)\n  z = Conv(x, l)\n  output y = y\n  output z = z\n");
  const Graph after = optimized(graph);
  EXPECT_EQ(count_of(after, OpKind::Conv), 1);
  expect_same_values(graph, after);
}

// 0 times an infinite element is no number: only where that is allowed.
TEST(Reach, KernelsOfTwoSizesBecomeOneWhereElementsAreFinite) {
  const Graph graph =
      graph_of("  input x : f32[1,2,5,5]\n" + constant("k", {2, 2, 1, 1}) + constant("l", {3, 2, 3, 3}) +
               constant("a", {2}) + constant("b", {3}) +
               "  y = Conv(x, k, a)\n  z = Conv(x, l, b) {pads=[1,1,1,1]}\n  output y = y\n  output z = z\n");
  EXPECT_EQ(count_of(optimized(graph), OpKind::Conv), 2);
  CountCost costs;
  SearchOptions options = untimed();
  options.allowed_marks.finite_only = true;
  options.max_steps = 40;
  const auto allowed = optimize(graph, applied_by_default(), costs, options);
  ASSERT_TRUE(allowed.ok());
  EXPECT_EQ(count_of(allowed->graph, OpKind::Conv), 1);
  expect_same_values(graph, allowed->graph);
}

// Queries, keys and values of two heads each; `turned` says how the keys are turned.
std::string attention(const std::string& turned) {
  std::string lines = "  input x : f32[1,3,4]\n";
  for (const char* name : {"q", "k", "v"})
    lines += constant(name + std::string("w"), {4, 4}) + constant(name + std::string("b"), {4}) + "  " + name +
             "p = MatMul(x, " + name + "w)\n  " + name + "s = Add(" + name + "p, " + name + "b)\n  " + name +
             "h = Reshape(" + name + "s) {shape=[1,3,2,2]}\n";
  return lines + "  q = Transpose(qh) {perm=[0,2,1,3]}\n  k = Transpose(kh) {perm=" + turned +
         "}\n  v = Transpose(vh) {perm=[0,2,1,3]}\n  w = MatMul(q, k)\n  s = Softmax(w)\n  y = MatMul(s, v)\n"
         "  output y = y\n";
}

TEST(Reach, ProjectionsOfAnAttentionBecomeOneWithWhatFollowsThem) {
  const Graph graph = graph_of(attention("[0,2,3,1]")), after = optimized(graph);
  EXPECT_EQ(count_of(after, OpKind::MatMul) + count_of(after, OpKind::Gemm), 3);
  EXPECT_EQ(count_of(after, OpKind::Reshape), 1);
  EXPECT_EQ(count_of(after, OpKind::Split), 1);
  expect_same_values(graph, after);
}

TEST(Reach, GemmsOfTransposedWeightsBecomeOne) {
  for (const std::string bias : {"", ", b"}) {
    const Graph graph = graph_of("  input x : f32[2,3]\n" + constant("u", {2, 3}) + constant("v", {2, 3}) +
                                 constant("t", {2, 3}) + constant("b", {2}) + "  y = Gemm(x, u" + bias +
                                 ") {transB=1}\n  z = Gemm(x, v" + bias + ") {transB=1}\n  w = Gemm(x, t" + bias +
                                 ") {transB=1}\n  output y = y\n  output z = z\n  output w = w\n");
    const Graph after = optimized(graph);
    EXPECT_EQ(count_of(after, OpKind::Gemm), 1) << bias;
    expect_same_values(graph, after);
  }
}

// Every elementwise operator of one input but those that scripts/make_class_rules leaves out.
std::vector<OpKind> unary_operators() {
  std::vector<OpKind> ops;
  for (const OpKind op : all_ops()) {
    const bool is_left_out = op == OpKind::Cast || op == OpKind::IsNaN || op == OpKind::Identity;
    if (op_info(op).has(kElementwise) && op_info(op).max_inputs == 1 && !is_left_out) ops.push_back(op);
  }
  return ops;
}

class EveryUnaryOperator : public testing::TestWithParam<OpKind> {};

TEST_P(EveryUnaryOperator, IsAppliedToThePartsOfASplitAtOnce) {
  const std::string op = op_info(GetParam()).name, element = GetParam() == OpKind::Not ? "bool" : "f32";
  const std::string attributes = GetParam() == OpKind::Clip ? " {min=-1, max=1}" : "";
  for (const int parts : {2, 3}) {
    std::string lines = "  input x : " + element + "[2,6,3]\n  ", outputs;
    for (int k = 0; k < parts; k++) {
      const std::string number = std::to_string(k);
      lines += (k ? ", p" : "p") + number;
      outputs += "  y" + number + " = " + op + "(p" + number + ")" + attributes + "\n  output y" + number + " = y" +
                 number + "\n";
    }
    const Graph graph =
        graph_of(lines + " = Split(x) {axis=1, split=" + (parts == 2 ? "[2,4]" : "[1,2,3]") + "}\n" + outputs);
    EXPECT_EQ(count_of(graph, GetParam()), parts);
    EXPECT_EQ(count_of(optimized(graph, of_elementwise_operators()), GetParam()), 1) << parts << " parts";
  }
}
INSTANTIATE_TEST_SUITE_P(Table, EveryUnaryOperator, testing::ValuesIn(unary_operators()),
                         [](const testing::TestParamInfo<OpKind>& op) { return op_info(op.param).name; });

struct WeightRow {
  std::string name, op, first, second, type;
};
std::ostream& operator<<(std::ostream& out, const WeightRow& row) { return out << row.name; }

class PartsByWeights : public testing::TestWithParam<WeightRow> {};

TEST_P(PartsByWeights, BecomeOne) {
  const WeightRow& row = GetParam();
  const auto call = [&](const std::string& part, const std::string& weight) {
    const auto operand = [&](const std::string& which) { return which == "part" ? part : weight; };
    return row.op + "(" + operand(row.first) + ", " + operand(row.second) + ")\n";
  };
  const Graph graph =
      graph_of("  input x : f32[2,5,3]\n  constant u = f32" + row.type + " {1,2}\n  constant v = f32" + row.type +
               " {4,0.5}\n  p, q, r = Split(x) {axis=1, split=[2,2,1]}\n  y = " + call("p", "u") +
               "  z = " + call("q", "v") + "  w = Neg(r)\n" + "  output y = y\n  output z = z\n  output w = w\n");
  // Of three parts, two: no rule. Of two, one.
  const Graph two = graph_of("  input x : f32[2,4,3]\n  constant u = f32" + row.type + " {1,2}\n  constant v = f32" +
                             row.type + " {4,0.5}\n  p, q = Split(x) {axis=1, split=[2,2]}\n  y = " + call("p", "u") +
                             "  z = " + call("q", "v") + "  output y = y\n  output z = z\n");
  const OpKind op = *find_op(row.op);
  const Graph after = optimized(two, of_elementwise_operators());
  EXPECT_EQ(count_of(after, op), 1);
  expect_same_values(two, after);
  EXPECT_EQ(count_of(optimized(graph, of_elementwise_operators()), op), 2);
}
INSTANTIATE_TEST_SUITE_P(Rows, PartsByWeights,
                         testing::Values(WeightRow{"Add", "Add", "part", "weight", "[2,1]"},
                                         WeightRow{"AddFirst", "Add", "weight", "part", "[2,1]"},
                                         WeightRow{"AddOfAllAxes", "Add", "part", "weight", "[1,2,1]"},
                                         WeightRow{"Mul", "Mul", "part", "weight", "[2,1]"},
                                         WeightRow{"Sub", "Sub", "part", "weight", "[2,1]"},
                                         WeightRow{"SubFrom", "Sub", "weight", "part", "[2,1]"},
                                         WeightRow{"Div", "Div", "part", "weight", "[2,1]"},
                                         WeightRow{"Max", "Max", "part", "weight", "[2,1]"},
                                         WeightRow{"PRelu", "PRelu", "part", "weight", "[2,1]"}),
                         [](const testing::TestParamInfo<WeightRow>& row) { return row.param.name; });

TEST(Reach, ARuleWithoutProofIsNotReached) {
  std::vector<RewriteRule> rules;
  for (const RewriteRule& rule : of_elementwise_operators())
    if (rule.name != "ranks-relu-of-parts") rules.push_back(rule);
  ASSERT_EQ(rules.size() + 1, of_elementwise_operators().size());
  const Graph graph = graph_of(
      "  input x : f32[2,6,3]\n  p, q = Split(x) {axis=1, split=[2,4]}\n  y = Relu(p)\n  z = Relu(q)\n"
      "  output y = y\n  output z = z\n");
  EXPECT_EQ(count_of(optimized(graph, rules), OpKind::Relu), 2);
}

}  // namespace
}  // namespace gopt
