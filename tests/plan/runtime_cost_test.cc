// What a graph costs an ONNX runtime: what runtimes fuse themselves is one kernel, all else a pass over memory.
#include <gtest/gtest.h>

#include "gopt/kernel_costs.h"
#include "gopt/text.h"

namespace gopt {
namespace {

Graph graph_of(const std::string& text) {
  auto graph = parse_graph("graph g\n" + text + "\nend");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return *graph;
}

// Weights are small constants: the reader of text is given no data of large ones.
std::string ones(const std::string& name, int count) {
  std::string text = "constant " + name + " = f32[" + std::to_string(count) + "] {";
  for (int k = 0; k < count; k++) text += k ? ", 1" : "1";
  return text + "}\n";
}
std::string matrix(const std::string& name, int rows, int columns) {
  std::string text = "constant " + name + " = f32[" + std::to_string(rows) + "," + std::to_string(columns) + "] {";
  for (int k = 0; k < rows * columns; k++) text += k ? ", 1" : "1";
  return text + "}\n";
}
std::string kernel(const std::string& name) {
  std::string text = "constant " + name + " = f32[16,16,1,1] {";
  for (int k = 0; k < 256; k++) text += k ? ", 1" : "1";
  return text + "}\n";
}

const std::string kImage = "input x : f32[1,16,64,64]\n" + kernel("k") + ones("scale", 16) + ones("shift", 16) +
                           ones("mean", 16) + ones("variance", 16);

Cost cost_of(const std::string& text) { return runtime_cost_oracle({})->estimate(graph_of(text)); }

// Graphs of which one costs a runtime what the other does, within a few hundredths of a kernel's start; or more.
struct Pair {
  std::string name, cheaper, dearer;
  bool is_same = false;
};
class RuntimeCost : public testing::TestWithParam<Pair> {};

TEST_P(RuntimeCost, Orders) {
  const Cost cheaper = cost_of(GetParam().cheaper), dearer = cost_of(GetParam().dearer);
  if (GetParam().is_same) {
    EXPECT_NEAR(cheaper.time_ms, dearer.time_ms, 0.03 * cheaper.time_ms);
  } else {
    EXPECT_GT(dearer.time_ms, 1.03 * cheaper.time_ms);
  }
}

// Of rows, in pieces; with or without its last steps.
std::string normalization(const std::string& inverse, bool has_mean, bool has_scale, bool has_bias) {
  std::string text =
      "constant two = f32[] {2}\nconstant one = f32[] {1}\nconstant eps = f32[] {1e-5}\n"
      "input x0 : f32[64,16]\n" +
      ones("w", 16) + ones("b", 16);
  text += has_mean ? "u = ReduceMean(x0) {axes=[1]}\nx = Sub(x0, u)\n" : "x = Abs(x0)\n";
  text += "p = Pow(x, two)\nv = ReduceMean(p) {axes=[1]}\ne = Add(v, eps)\ns = Sqrt(e)\n";
  text += inverse == "Div" ? "n = Div(x, s)\n" : "i = " + inverse + "\nn = Mul(x, i)\n";
  std::string last = "n";
  if (has_scale) text += "g = Mul(w, n)\n", last = "g";
  if (has_bias) text += "r = Add(g, b)\n", last = "r";
  return text + "output z = " + last;
}

const std::string kGelu =
    "constant root = f32[] {1.4142135}\nconstant one = f32[] {1}\nconstant half = f32[] {0.5}\ninput x : f32[64,256]\n"
    "d = Div(x, root)\ne = Erf(d)\na = Add(e, one)\nm = Mul(x, a)\n";

INSTANTIATE_TEST_SUITE_P(
    Pairs, RuntimeCost,
    testing::Values(
        // Runtimes know both by their scale and bias: what has none of them is a kernel a step.
        Pair{"LayerNormalizationHasABias", normalization("Div", true, true, true),
             normalization("Div", true, true, false)},
        Pair{"LayerNormalizationHasAScale", normalization("Div", true, true, true),
             normalization("Div", true, false, false)},
        Pair{"SimplifiedNormalizationHasAScale", normalization("Div", false, true, false),
             normalization("Div", false, false, false)},
        Pair{"SimplifiedNormalizationByAQuotient", normalization("Div(one, s)", false, true, false),
             normalization("Div(one, s)", false, false, false)},
        Pair{"SimplifiedNormalizationByAReciprocal", normalization("Reciprocal(s)", false, true, false),
             normalization("Reciprocal(s)", false, false, false)},
        Pair{"NormalizationAfterConvolutionIsFolded", kImage + "c = Conv(x, k)\noutput y = c",
             kImage + "c = Conv(x, k)\nb = BatchNormalization(c, scale, shift, mean, variance)\noutput y = b", true},
        Pair{"ActivationOfConvolutionIsFree", kImage + "c = Conv(x, k)\noutput y = c",
             kImage + "c = Conv(x, k)\nr = Relu(c)\noutput y = r", true},
        Pair{
            "SumAndActivationOfConvolutionReadOneMoreTensor",
            kImage + "input z : f32[1,16,64,64]\nc = Conv(x, k)\ns = Add(c, z)\nr = Relu(s)\noutput y = r",
            kImage + "input z : f32[1,16,64,64]\nc = Conv(x, k)\nt = Exp(c)\ns = Add(t, z)\nr = Relu(s)\noutput y = r"},
        Pair{"ActivationOfWhatOthersReadIsAPass", kImage + "c = Conv(x, k)\nr = Relu(c)\noutput y = r\noutput z = r",
             kImage + "c = Conv(x, k)\nr = Relu(c)\noutput y = r\noutput z = c"},
        Pair{"NormalizationAloneIsOnePassNotTwo",
             kImage + "b = BatchNormalization(x, scale, shift, mean, variance)\noutput y = b",
             kImage + ones("s", 1) + ones("t", 1) + "m = Mul(x, s)\nb = Add(m, t)\noutput y = b"},
        Pair{"ElementwiseChainsAreNotFused", "input x : f32[512,512]\na = Neg(x)\noutput y = a",
             "input x : f32[512,512]\na = Neg(x)\nb = Abs(a)\noutput y = b"},
        Pair{"BiasOfAProductIsFree", "input x : f32[64,8]\n" + matrix("w", 8, 4) + "p = MatMul(x, w)\noutput y = p",
             "input x : f32[64,8]\n" + matrix("w", 8, 4) + ones("b", 4) +
                 "p = MatMul(x, w)\ns = Add(p, b)\noutput y = s",
             true},
        Pair{"ActivationOfAProductNeedsItsBias",
             "input x : f32[64,8]\n" + matrix("w", 8, 4) + ones("b", 4) +
                 "p = MatMul(x, w)\ns = Add(p, b)\nr = Relu(s)\noutput y = r",
             "input x : f32[64,8]\n" + matrix("w", 8, 4) + "p = MatMul(x, w)\nr = Relu(p)\noutput y = r"},
        Pair{"GeluInPiecesIsGelu", kGelu + "r = Mul(m, half)\noutput y = r",
             "input x : f32[64,256]\nr = Gelu(x)\noutput y = r", true},
        Pair{"APatternThatIsBrokenIsPaidFor", kGelu + "r = Mul(m, half)\noutput y = r",
             kGelu + "r = Mul(m, half)\noutput y = r\noutput z = e"},
        Pair{"APatternOfOtherNumbersIsNone", kGelu + "r = Mul(m, half)\noutput y = r",
             kGelu + "r = Mul(m, root)\noutput y = r"},
        Pair{"SwishIsOnePass", "input x : f32[512,512]\ns = Sigmoid(x)\nr = Mul(s, x)\noutput y = r",
             "input x : f32[512,512]\nz = Neg(x)\ns = Sigmoid(z)\nr = Mul(s, x)\noutput y = r"},
        Pair{"WhatDependsOnWeightsAloneIsFree",
             "input x : f32[64,8]\n" + matrix("w", 8, 4) + "p = MatMul(x, w)\noutput y = p",
             "input x : f32[64,8]\n" + matrix("w", 8, 4) + ones("s", 4) +
                 "v = Mul(w, s)\np = MatMul(x, v)\noutput y = p",
             true},
        Pair{"ImagesStayInBlocksThroughPools",
             kImage + "c = Conv(x, k)\np = MaxPool(c) {kernel_shape=[1,1]}\nd = Conv(p, k)\noutput y = d",
             kImage + "c = Conv(x, k)\np = Transpose(c) {perm=[0,1,3,2]}\nd = Conv(p, k)\noutput y = d"},
        Pair{"ViewsAreNoPass", "input x : f32[512,512]\nr = Reshape(x) {shape=[262144]}\noutput y = r",
             "input x : f32[512,512]\nr = Transpose(x) {perm=[1,0]}\noutput y = r"}),
    [](const auto& info) { return info.param.name; });

TEST(RuntimeWeights, CopiesOfThemCost) {
  const std::string head = "input x : f32[1,8]\ninput z : f32[1,8]\n" + matrix("w", 8, 512) + "p = MatMul(x, w)\n";
  const Cost shared = cost_of(head + "q = MatMul(z, w)\noutput y = p\noutput o = q");
  const Cost copied = cost_of(head + "v = Neg(w)\nq = MatMul(z, v)\noutput y = p\noutput o = q");
  EXPECT_EQ(shared.kernels, copied.kernels);
  EXPECT_LT(shared.time_ms, copied.time_ms);
}

// Of graphs that take one time the one of fewer nodes costs less; never the other way.
TEST(RuntimeNodes, FewerAreBetterWhereTimeIsTheSame) {
  const Cost one = cost_of(kImage + "c = Conv(x, k)\nr = Relu(c)\noutput y = r");
  const Cost none = cost_of(kImage + "c = Conv(x, k)\noutput y = c");
  EXPECT_EQ(one.kernels, 2);
  EXPECT_EQ(none.kernels, 1);
  EXPECT_LT(none.time_ms, one.time_ms);
}

// ONNX Runtime makes one convolution of a channel's scale and shift: there is nothing to gain by saying so.
TEST(RuntimeImages, NormalizationIsAConvolutionOfEachChannel) {
  std::string channels = ones("w", 16);
  channels.replace(channels.find("[16]"), 4, "[16,1,1,1]");
  const std::string before = kImage + channels + "c = Conv(x, k)\ne = Exp(c)\n", after = "s = Add(b, e)\noutput y = s";
  EXPECT_LE(cost_of(before + "b = BatchNormalization(e, scale, shift, mean, variance)\n" + after).time_ms,
            cost_of(before + "b = Conv(e, w, shift) {group=16}\n" + after).time_ms);
}

// Of three axes ONNX Runtime makes a Gemm between two Reshapes itself: said in the file, these may be shared.
TEST(RuntimeProducts, OfManyAxesAreMatricesBetweenReshapes) {
  const std::string head = "input x : f32[1,8,8]\n" + matrix("w", 8, 8) + ones("b", 8);
  const std::string linear = "p = MatMul(x, w)\ns = Add(p, b)\n",
                    rows = "r = Reshape(x) {shape=[8,8]}\ng = Gemm(r, w, b)\n";
  const Cost alone = cost_of(head + linear + "output z = s");
  const Cost said = cost_of(head + rows + "s = Reshape(g) {shape=[1,8,8]}\noutput z = s");
  EXPECT_LT(alone.time_ms, said.time_ms);  // the same time, and fewer nodes
  EXPECT_NEAR(alone.time_ms, said.time_ms, 0.05 * said.time_ms);
  const std::string heads = "{shape=[1,8,2,4]}\noutput z = h";
  EXPECT_GT(cost_of(head + linear + "h = Reshape(s) " + heads).time_ms,
            cost_of(head + rows + "h = Reshape(g) " + heads).time_ms);
}

// Extents that the file has to compute are nodes of it.
TEST(RuntimeNodes, OpenExtentsOfAShapeAreNodes) {
  const std::string head = "input x : f32[n,m,8]\n";
  EXPECT_EQ(cost_of(head + "r = Reshape(x) {shape=[n,m*8]}\noutput z = r").kernels, 1);
  EXPECT_GT(cost_of(head + "r = Reshape(x) {shape=[m*8,n]}\noutput z = r").kernels, 1);
}

// ONNX Runtime took 2.3 times as long for a product by a column as for the mean that it stands for.
TEST(RuntimeProducts, ByAColumnAreDearerThanASumOfEachRow) {
  EXPECT_LT(cost_of("input x : f32[128,64]\ny = ReduceMean(x) {axes=[1]}\noutput z = y").time_ms,
            cost_of("input x : f32[128,64]\n" + matrix("w", 64, 1) + "y = MatMul(x, w)\noutput z = y").time_ms);
}

// ONNX Runtime transposes a product's operand as it reads, and copies rows where the last axis stays; in one step it
// does neither, and attention took 1.4 times as long.
TEST(RuntimeTransposes, OfAnOperandAreNotMergedWithTheOneBefore) {
  const std::string head = "input x : f32[1,64,8,80]\ninput q : f32[1,8,1,80]\n";
  EXPECT_LT(
      cost_of(head +
              "a = Transpose(x) {perm=[0,2,1,3]}\nb = Transpose(a) {perm=[0,1,3,2]}\ny = MatMul(q, b)\noutput z = y")
          .time_ms,
      cost_of(head + "b = Transpose(x) {perm=[0,2,3,1]}\ny = MatMul(q, b)\noutput z = y").time_ms);
}

TEST(RuntimeNodes, WithoutDefinitionOrExtentsHaveACost) {
  const Graph symbolic = graph_of("input x : f32[n,4]\ne = Exp(x)\noutput z = e");
  GraphBuilder builder;
  const Value x = symbolic.inputs()[0];
  const NodePtr opaque = builder.opaque(std::make_shared<OpaqueOp>(OpaqueOp{"custom", "Frobnicate", "", {}}), {x},
                                        {{ElementType::Float32, std::nullopt}});
  const Graph graph({x}, {{"y", {opaque, 0}}, symbolic.outputs()[0]}, {});
  const Cost cost = runtime_cost_oracle({})->estimate(graph);
  EXPECT_EQ(cost.kernels, 2);
  EXPECT_GT(cost.time_ms, 0);
}

}  // namespace
}  // namespace gopt
