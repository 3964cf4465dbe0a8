// Values that a plan of fp16 has no room for.
#include "../../driver/half_range.h"

#include <gtest/gtest.h>

#include "gopt/text.h"

namespace gopt::driver {
namespace {

Tensor filled(std::vector<int64_t> dims, double value) {
  const auto count = static_cast<size_t>(element_count(dims));
  return Tensor::from_values(ElementType::Float32, std::move(dims), std::vector<double>(count, value));
}

// y = (x w1) w2 w3: the first product is `scale` times as large as x's sums.
Graph products(double scale) {
  auto graph = parse_graph(
      "graph g\ninput x : f32[4,16]\ninput w1 : f32[16,16]\ninput w2 : f32[16,16]\na = MatMul(x, w1)\nb = MatMul(a, "
      "w2)\nc = MatMul(b, w2)\noutput y = c\nend");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  GraphBuilder builder;
  std::map<Value, Value> weights;
  std::vector<Value> inputs;
  for (const Value& input : graph->inputs())
    if (input.node->name == "x")
      inputs.push_back(input);
    else
      weights[input] = builder.constant(filled({16, 16}, input.node->name == "w1" ? scale : 1e-3), input.node->name);
  auto replaced = replace_values(*graph, weights);
  EXPECT_TRUE(replaced.ok());
  return Graph(inputs, replaced->outputs(), {});
}

std::map<std::string, ElementType> storage(PlannedGraph& planned) {
  std::map<std::string, ElementType> types;
  const auto plan = planned.plan();
  EXPECT_TRUE(plan.ok());
  for (const Kernel& kernel : (*plan)->kernels)
    for (const BufferId id : kernel.output_buffers) {
      const Buffer& buffer = (*plan)->buffer(id);
      // As it is made; a kernel that converts it for a reader comes later.
      if (buffer.value.node->is(OpKind::MatMul)) types.emplace(buffer.value.node->output_names.at(0), buffer.element);
    }
  return types;
}

TEST(HalfRange, WhatLeavesItIsFoundAndStoredInFp32) {
  const CostSource costs;
  const Target target{.kind = TargetKind::Cuda, .precision = Precision::Fp16};
  for (const bool interprets : {true, false}) {
    PlannedGraph planned(products(1e4), target, costs);
    EXPECT_EQ(storage(planned)["a"], ElementType::Float16);
    const auto found = values_beyond_half(planned, {{"x", filled({4, 16}, 1)}}, interprets);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(found->size(), 1U);
    planned.keep_in_fp32(*found);
    const auto types = storage(planned);
    EXPECT_EQ(types.at("a"), ElementType::Float32);
    EXPECT_EQ(types.at("b"), ElementType::Float32);  // computed in fp32, as it reads that
    EXPECT_EQ(types.at("c"), ElementType::Float32);  // the output
  }
}

TEST(HalfRange, SoAreWeights) {
  const CostSource costs;
  PlannedGraph planned(products(1e6), {.kind = TargetKind::Cuda, .precision = Precision::Fp16}, costs);
  const auto found = values_beyond_half(planned, {{"x", filled({4, 16}, 0)}}, true);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->size(), 1U);
  planned.keep_in_fp32(*found);
  const auto plan = planned.plan();
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ((*plan)->buffer((*plan)->kernels[0].input_buffers[1]).element, ElementType::Float32);
}

TEST(HalfRange, OrdinaryValuesAndOtherPrecisionsHaveRoom) {
  const CostSource costs;
  for (const Precision precision : {Precision::Fp16, Precision::Bf16, Precision::Fp32}) {
    PlannedGraph planned(products(precision == Precision::Fp16 ? 1 : 1e6),
                         {.kind = TargetKind::Cuda, .precision = precision}, costs);
    const auto found = values_beyond_half(planned, {{"x", filled({4, 16}, 1)}}, true);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_TRUE(found->empty()) << to_string(precision);
  }
}

}  // namespace
}  // namespace gopt::driver
