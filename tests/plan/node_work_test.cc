// What a node takes, from its definition.
#include "../../planner/node_work.h"

#include <gtest/gtest.h>

#include "gopt/text.h"

namespace gopt::planner {
namespace {

// Of the node of the line `op` over x : f32[2,8,6,6].
NodeWork work_of_line(const std::string& op) {
  const auto graph = parse_graph(
      "graph g\ninput x : f32[2,8,6,6]\ninput i : i64[3]\ninput w : f32[4,8,1,1]\ny = " + op + "\noutput y = y\nend\n");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return work_of(*graph->outputs()[0].value.node);
}

TEST(NodeWork, ReducesWhereItsDefinitionDoes) {
  for (const char* op : {"MaxPool(x) {kernel_shape=[3,3]}", "Softmax(x)", "ReduceMean(x) {axes=[1]}", "Conv(x, w)",
                         "GlobalAveragePool(x)", "ReduceLogSumExp(x) {axes=[2]}"})
    EXPECT_TRUE(work_of_line(op).reduces) << op;
  for (const char* op : {"Relu(x)", "Gather(x, i)", "MaxPool(x) {kernel_shape=[1,1], strides=[2,2]}", "Add(x, x)",
                         "Transpose(x) {perm=[0,2,3,1]}"})
    EXPECT_FALSE(work_of_line(op).reduces) << op;
}

TEST(NodeWork, OperationsAreOfAllElements) {
  EXPECT_EQ(work_of_line("Relu(x)").operations, 2 * 8 * 6 * 6);
  EXPECT_EQ(work_of_line("Transpose(x) {perm=[0,2,3,1]}").operations, 0);
  EXPECT_GT(work_of_line("Exp(x)").operations, 5 * 2 * 8 * 6 * 6);
}

}  // namespace
}  // namespace gopt::planner
