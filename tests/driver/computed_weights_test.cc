#include "gopt/computed_weights.h"

#include <gtest/gtest.h>

#include "../support/graph_with_weights.h"
#include "gopt/interpreter.h"

namespace gopt {
namespace {

int nodes_that_compute(const Graph& graph) {
  int count = 0;
  for (const NodePtr& node : graph.nodes()) count += !node->is(OpKind::Input) && !node->is(OpKind::Constant);
  return count;
}

const char* const kSums =
    "  input x : f32[3,4]\n  input w1 : f32[4,5]\n  input w2 : f32[4,5]\n  s = Add(w1, w2)\n  y = MatMul(x, s)\n"
    "  output y = y\n";
const char* const kAlone = "  input x : f32[3,4]\n  output y = x\n";

TEST(ComputedWeights, BecomeWeights) {
  const Graph graph = graph_with_weights(kSums);
  const Graph folded = with_computed_weights(graph, graph_with_weights(kAlone));
  EXPECT_EQ(nodes_that_compute(graph), 2);
  EXPECT_EQ(nodes_that_compute(folded), 1);
  const std::map<std::string, Tensor> inputs{
      {"x", Tensor::from_values<double>(ElementType::Float32, {3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2, -3})}};
  EXPECT_EQ((*interpret(graph, inputs))[0].to_doubles(), (*interpret(folded, inputs))[0].to_doubles());
}

TEST(ComputedWeights, OfTheAuthorStayNodes) {
  const Graph graph = graph_with_weights(kSums);
  EXPECT_TRUE(with_computed_weights(graph, graph).same_as(graph));
}

TEST(ComputedWeights, ThatAreLargerThanWhatTheyAreMadeOfStayNodes) {
  const Graph graph = graph_with_weights(
      "  input x : f32[3,64]\n  input w1 : f32[1,64]\n  s = Expand(w1) {shape=[3,64]}\n  y = Add(x, s)\n"
      "  output y = y\n");
  EXPECT_EQ(nodes_that_compute(with_computed_weights(graph, graph_with_weights(kAlone))), 2);
}

}  // namespace
}  // namespace gopt
