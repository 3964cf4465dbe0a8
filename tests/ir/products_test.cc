// Products in floats against products as the definitions stand: every layout, group, stride and padding finds the same
// elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>
#include <random>

#include "contraction.h"
#include "gopt/interpreter.h"
#include "gopt/text.h"

namespace gopt {
namespace {

struct Row {
  const char* name;
  const char* graph;       // between "graph g" and "end"
  bool is_product = true;  // it is found, and not left to the evaluator
};
std::ostream& operator<<(std::ostream& os, const Row& row) { return os << row.name; }

Graph graph_of(const Row& row) {
  auto graph = parse_graph(std::string("graph g\n") + row.graph + "\nend\n");
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return *graph;
}

Tensor drawn(const TensorType& type, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<size_t>(element_count(type.static_shape())));
  for (double& value : values) value = normal(random);
  return Tensor::from_values<double>(type.element, type.static_shape(), values);
}

std::map<std::string, Tensor> drawn_inputs(const Graph& graph, uint64_t seed) {
  std::map<std::string, Tensor> inputs;
  for (const Value& input : graph.inputs()) inputs[input.node->name] = drawn(input.type(), seed++);
  return inputs;
}

// The product in the first stage of the graph's last node, of drawn tensors that lie among NaNs; none: there is no
// such.
struct AmongNaNs {
  explicit AmongNaNs(const Graph& graph) {
    const Node& node = *graph.outputs()[0].value.node;
    std::vector<TensorExpr> tensors;
    std::vector<ElementType> types;
    for (const Value& input : node.inputs) {
      const Tensor tensor = drawn(input.type(), memory.size());
      const size_t size = tensor.bytes().size();
      std::vector<std::byte>& all = memory.emplace_back(3 * size, std::byte{0xff});
      std::ranges::copy(tensor.bytes(), all.begin() + static_cast<std::ptrdiff_t>(size));
      tensors.push_back(input_tensor(static_cast<int>(types.size()), tensor.tensor_type()));
      types.push_back(tensor.type());
      views.push_back({tensor.type(), tensor.dims(), all.data() + size});
    }
    const auto definition = define(node.op, tensors, node.attributes);
    EXPECT_TRUE(definition.ok()) << definition.error().message;
    const std::vector<Stage> stages = stage(definition->outputs[0], types, false);
    found = ir::find_product(stages[0], views, static_cast<int>(views.size()));
  }

  std::list<std::vector<std::byte>> memory;
  std::vector<ir::TensorView> views;
  std::optional<ir::FoundProduct> found;
};

class ProductsTest : public testing::TestWithParam<Row> {};

TEST_P(ProductsTest, InFloatsAreWhatTheyAreExactly) {
  const Graph graph = graph_of(GetParam());
  EXPECT_EQ(AmongNaNs(graph).found.has_value(), GetParam().is_product);
  const auto inputs = drawn_inputs(graph, 7);
  const auto exact = interpret(graph, inputs), floats = interpret(graph, inputs, Products::Floats);
  ASSERT_TRUE(exact.ok()) << exact.error().message;
  ASSERT_TRUE(floats.ok()) << floats.error().message;
  const std::vector<double> a = (*exact)[0].to_doubles(), b = (*floats)[0].to_doubles();
  ASSERT_EQ(a.size(), b.size());
  for (size_t at = 0; at < a.size(); at++) EXPECT_NEAR(a[at], b[at], 1e-4) << "element " << at;
}

// A number there would count as zero times it, and as nothing seen: what is there may as well be none.
TEST_P(ProductsTest, WhatLiesBesideATensorIsNotRead) {
  const Graph graph = graph_of(GetParam());
  const AmongNaNs own(graph);
  if (!own.found) return;
  const size_t count =
      own.found->product.out_rows.size() * own.found->product.out_columns.size() * own.found->product.batches.size();
  std::vector<float> sums(count);
  ir::evaluate_product(own.found->product, sums.data());
  for (size_t at = 0; at < count; at++) ASSERT_FALSE(std::isnan(sums[at])) << "element " << at;
}

const Row kRows[] = {
    {"Matrices", "input a : f32[37,300]\ninput b : f32[300,45]\ny = MatMul(a, b)\noutput y = y"},
    {"Batches", "input a : f32[2,3,9,20]\ninput b : f32[2,3,20,7]\ny = MatMul(a, b)\noutput y = y"},
    {"BroadcastBatches", "input a : f32[2,1,9,20]\ninput b : f32[3,20,7]\ny = MatMul(a, b)\noutput y = y"},
    {"VectorTimesMatrix", "input a : f32[50]\ninput b : f32[50,33]\ny = MatMul(a, b)\noutput y = y"},
    {"MatrixTimesVector", "input a : f32[33,50]\ninput b : f32[50]\ny = MatMul(a, b)\noutput y = y"},
    {"Doubles", "input a : f64[9,20]\ninput b : f64[20,7]\ny = MatMul(a, b)\noutput y = y", false},
    {"FewElements", "input a : f32[3,50]\ninput b : f32[50,4]\ny = MatMul(a, b)\noutput y = y", false},
    {"Gemm", "input a : f32[19,40]\ninput b : f32[40,23]\ny = Gemm(a, b)\noutput y = y"},
    {"GemmOfTransposed",
     "input a : f32[40,19]\ninput b : f32[23,40]\ninput c : f32[23]\ny = Gemm(a, b, c) {alpha=0.5, beta=2, transA=1, "
     "transB=1}\noutput y = y"},
    {"Conv", "input x : f32[2,5,12,13]\ninput w : f32[9,5,3,3]\ny = Conv(x, w)\noutput y = y"},
    {"ConvPadded",
     "input x : f32[2,5,12,13]\ninput w : f32[9,5,3,3]\ninput b : f32[9]\ny = Conv(x, w, b) {pads=[1,1,1,1]}\noutput y "
     "= y"},
    {"ConvPaddedOnOneSide",
     "input x : f32[1,5,12,13]\ninput w : f32[9,5,3,2]\ny = Conv(x, w) {pads=[0,1,2,0]}\noutput y = y"},
    {"ConvStridedDilated",
     "input x : f32[1,5,20,21]\ninput w : f32[9,5,3,3]\ny = Conv(x, w) {pads=[2,1,2,1], strides=[2,3], "
     "dilations=[2,1]}\n"
     "output y = y"},
    {"ConvInGroups",
     "input x : f32[1,12,9,9]\ninput w : f32[15,4,3,3]\ny = Conv(x, w) {group=3, pads=[1,1,1,1]}\noutput y = y"},
    {"ConvByChannel",
     "input x : f32[1,12,9,9]\ninput w : f32[12,1,3,3]\ny = Conv(x, w) {group=12, pads=[1,1,1,1], "
     "strides=[2,2]}\noutput y "
     "= y"},
    {"ConvOfOneAxis", "input x : f32[2,3,300]\ninput w : f32[4,3,5]\ny = Conv(x, w) {pads=[2,2]}\noutput y = y"},
    {"ConvOfThreeAxes",
     "input x : f32[1,2,5,6,7]\ninput w : f32[3,2,3,3,3]\ny = Conv(x, w) {pads=[1,1,1,1,1,1]}\noutput y = y"},
    // Axes of one place, whose windows are larger: which of their taps are there, no place says.
    {"ConvOfOneFrame",
     "input x : f32[1,6,1,5,5]\ninput w : f32[8,6,3,1,1]\ny = Conv(x, w) {pads=[1,0,0,1,0,0]}\noutput y = y"},
    {"ConvOfOnePlace",
     "input x : f32[1,40,1,1]\ninput w : f32[70,40,3,3]\ny = Conv(x, w) {pads=[1,1,1,1]}\noutput y = y"},
    {"ConvToOnePlace",
     "input x : f32[3,4,2,2]\ninput w : f32[20,4,3,3]\ny = Conv(x, w) {pads=[0,0,1,1]}\noutput y = y"},
    {"ConvLongerThanABlock",
     "input x : f32[1,40,5,5]\ninput w : f32[70,40,3,3]\ny = Conv(x, w) {pads=[1,1,1,1]}\noutput y = y"},
    {"ConvTranspose",
     "input x : f32[1,4,6,6]\ninput w : f32[4,5,3,3]\ny = ConvTranspose(x, w) {strides=[2,2]}\noutput y = y", false},
};
INSTANTIATE_TEST_SUITE_P(Operators, ProductsTest, testing::ValuesIn(kRows),
                         [](const auto& info) { return info.param.name; });

// Padding is not read: a zero in its place would make NaN of an infinite weight.
TEST(Products, PaddingTimesInfinityIsNothing) {
  const Graph graph =
      graph_of({"", "input x : f32[1,1,30]\ninput w : f32[2,1,3]\ny = Conv(x, w) {pads=[1,1]}\noutput y = y"});
  const auto infinity = std::numeric_limits<double>::infinity();
  const std::map<std::string, Tensor> inputs{
      {"x", Tensor::from_values<double>(ElementType::Float32, {1, 1, 30}, std::vector<double>(30, 1))},
      {"w", Tensor::from_values<double>(ElementType::Float32, {2, 1, 3}, {infinity, 1, 1, 1, 1, 1})}};
  const auto outputs = interpret(graph, inputs, Products::Floats);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  const std::vector<double> values = (*outputs)[0].to_doubles();
  EXPECT_EQ(values[0], 2);
  EXPECT_EQ(values[1], infinity);
}

TEST(Products, SeveralInputsAtOnceAreEachAlone) {
  const Graph graph =
      graph_of({"",
                "input x : f32[20,30]\nconstant w = f32[1,1] {3}\nr = Expand(w) {shape=[30,40]}\nm = MatMul(x, r)\ny = "
                "Softmax(m)\noutput y = y\noutput m = m"});
  const std::vector inputs{drawn_inputs(graph, 1), drawn_inputs(graph, 2), drawn_inputs(graph, 3)};
  const auto all = interpret_all(graph, inputs);
  ASSERT_TRUE(all.ok()) << all.error().message;
  ASSERT_EQ(all->size(), inputs.size());
  for (size_t k = 0; k < inputs.size(); k++) {
    const auto alone = interpret(graph, inputs[k]);
    ASSERT_TRUE(alone.ok());
    for (size_t output = 0; output < alone->size(); output++)
      EXPECT_EQ((*all)[k][output].to_doubles(), (*alone)[output].to_doubles());
  }
}

}  // namespace
}  // namespace gopt
