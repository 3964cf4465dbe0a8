// Valid models at the ends of what numbers, ranges and memory hold: each is read, and means what ONNX says.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "gopt/interpreter.h"
#include "gopt/onnx.h"
#include "model_builder.h"
#include "test_folder.h"

namespace gopt {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();

Graph read(TestModel& model) {
  const TestFolder folder;
  model.save(folder.file("a.onnx"));
  auto imported = import_onnx(folder.file("a.onnx"), {.ranges_fit = true});
  if (!imported.ok()) throw std::runtime_error(imported.error().message);
  return imported->graph;
}

// The values of the only output.
std::vector<double> values_of(const Graph& graph, const std::map<std::string, Tensor>& inputs) {
  const auto outputs = interpret(graph, inputs);
  if (!outputs.ok()) throw std::runtime_error(outputs.error().message);
  return (*outputs)[0].to_doubles();
}

struct Arithmetic {
  const char* op;
  int64_t a, b, expected;  // of integers that wrap
};

class ConstantArithmetic : public testing::TestWithParam<Arithmetic> {};

TEST_P(ConstantArithmetic, WrapsAsIntegersDo) {
  const Arithmetic& c = GetParam();
  TestModel model;
  model.input("x", {1}, kInt64);
  model.constant(int_tensor("a", {c.a}));
  model.constant(int_tensor("b", {c.b}));
  model.node(c.op, {"a", "b"}, {"c"});
  model.node("Sub", {"c", "x"}, {"y"});
  model.output("y", {1}, kInt64);
  const auto outputs = interpret(read(model), {{"x", Tensor::from_values<int64_t>(ElementType::Int64, {1}, {0})}});
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  EXPECT_EQ((*outputs)[0].to_ints(), std::vector<int64_t>{c.expected});
}
INSTANTIATE_TEST_SUITE_P(Limits, ConstantArithmetic,
                         testing::Values(Arithmetic{"Div", kLeast, -1, kLeast}, Arithmetic{"Div", -7, -1, 7},
                                         Arithmetic{"Sub", kLeast, kLeast, 0}, Arithmetic{"Sub", -1, kLeast, kMost},
                                         Arithmetic{"Mul", int64_t{1} << 40, int64_t{1} << 40, 0}),
                         [](const auto& info) { return info.param.op + std::to_string(info.index); });

struct Range {
  int64_t start, end, step;
};

class EmptyRange : public testing::TestWithParam<Range> {};

// Whatever the extent, which is open.
TEST_P(EmptyRange, OfAnOpenAxisIsEmptyAtAnySize) {
  TestModel model;
  model.input("x", {"n"});
  model.constant(int_tensor("starts", {GetParam().start}));
  model.constant(int_tensor("ends", {GetParam().end}));
  model.constant(int_tensor("axes", {0}));
  model.constant(int_tensor("steps", {GetParam().step}));
  model.node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"});
  model.output("y", {""});
  const Graph graph = read(model);
  for (const int64_t count : {0, 1, 2, 9}) {
    const Tensor x = Tensor::from_values<double>(ElementType::Float32, {count},
                                                 std::vector<double>(static_cast<size_t>(count), 1.0));
    EXPECT_EQ(values_of(graph, {{"x", x}}), std::vector<double>()) << count;
  }
}
INSTANTIATE_TEST_SUITE_P(Limits, EmptyRange,
                         testing::Values(Range{3, 1, 1}, Range{-2, -4, 1}, Range{1, 3, -1}, Range{2, 2, -2}));

TEST(Limits, AStepBeyondAnyExtentTakesOne) {
  TestModel model;
  model.input("x", {4});
  model.constant(int_tensor("starts", {1}));
  model.constant(int_tensor("ends", {kMost}));
  model.constant(int_tensor("axes", {0}));
  model.constant(int_tensor("steps", {kMost}));
  model.node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"});
  model.output("y", {1});
  const Graph graph = read(model);
  EXPECT_EQ(values_of(graph, {{"x", Tensor::from_values<double>(ElementType::Float32, {4}, {1, 2, 3, 4})}}),
            std::vector<double>{2});
}

// Where both places lie before the axis, its first element is taken, as runtimes have it: what is known of the extent
// does not change that.
TEST(Limits, ABackwardRangeFromBeforeTheAxisIsNotMadeEmpty) {
  TestModel model;
  model.input("x", {"n"});
  model.constant(int_tensor("starts", {-4}));
  model.constant(int_tensor("ends", {-2}));
  model.constant(int_tensor("axes", {0}));
  model.constant(int_tensor("steps", {-2}));
  model.node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"});
  model.output("y", {""});
  const TestFolder folder;
  model.save(folder.file("a.onnx"));
  const auto imported = import_onnx(folder.file("a.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_TRUE(imported->graph.outputs()[0].value.node->is(OpKind::Opaque));
}

// Its declared shape may be of ONNX's own inference, which counts frequencies wrongly without a frame's length.
TEST(Limits, AnStftMayBeDeclaredTooSmall) {
  for (const bool has_length : {false, true}) {
    TestModel model;
    model.input("x", {1, 32, 1});
    model.constant(int_tensor("step", {8}, true));
    model.constant(float_tensor("window", {8}));
    model.constant(int_tensor("length", {8}, true));
    model.node("STFT", {"x", "step", "window", has_length ? "length" : ""}, {"y"});
    model.output("y", {1, 4, 8, 2});
    const TestFolder folder;
    model.save(folder.file("a.onnx"));
    const auto imported = import_onnx(folder.file("a.onnx"), {.lower = true});
    EXPECT_EQ(imported.ok(), !has_length);
  }
}

TEST(Limits, PartsOfAnOpenAxisAreRoundedUpButTheLast) {
  TestModel model(18);
  model.input("x", {"n"});
  model.node("Split", {"x"}, {"a", "b", "y"}).i("axis", 0).i("num_outputs", 3);
  model.output("y", {""});
  const Graph graph = read(model);
  for (const auto& [count, last] : {std::pair<int64_t, size_t>{7, 1}, {9, 3}, {8, 2}, {3, 1}}) {
    std::vector<double> x(static_cast<size_t>(count));
    for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<double>(i);
    EXPECT_EQ(values_of(graph, {{"x", Tensor::from_values<double>(ElementType::Float32, {count}, x)}}),
              std::vector<double>(x.end() - static_cast<std::ptrdiff_t>(last), x.end()));
  }
}

TEST(Limits, WhatWouldFillTheMemoryIsNotComputedBeforehand) {
  TestModel model;
  model.input("x", {1});
  model.constant(float_tensor("c", {8}, {1, 2, 3, 4, 5, 6, 7, 8}));
  model.constant(int_tensor("repeats", {int64_t{1} << 31}));
  model.node("Tile", {"c", "repeats"}, {"t"});
  model.node("ReduceSum", {"t"}, {"s"}).i("keepdims", 0);
  model.node("Add", {"x", "s"}, {"y"});
  model.output("y", {1});
  const Graph graph = read(model);
  const auto sum = std::ranges::find_if(graph.nodes(), [](const NodePtr& node) { return node->is(OpKind::ReduceSum); });
  ASSERT_NE(sum, graph.nodes().end());
  ASSERT_FALSE(graph.depends_on_weights_only(graph.id_of(*sum)));
  const TestFolder folder;
  EXPECT_TRUE(export_onnx(graph, folder.file("b.onnx")).ok());
}

}  // namespace
}  // namespace gopt
