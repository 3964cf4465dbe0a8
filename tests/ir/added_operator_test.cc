// An operator is a row and a definition: ir/ and planner/, built with one row more in op_table.def (CMakeLists.txt here
// adds it), read, print, infer, evaluate and plan the operator that this file defines.
#include <gtest/gtest.h>

#include "definitions/context.h"
#include "gopt/interpreter.h"
#include "gopt/kernel_costs.h"
#include "gopt/plan.h"
#include "gopt/text.h"

namespace gopt::ir {

// `scale` times what is below the diagonal of a matrix; zero elsewhere.
void define_ScaledBelow(DefineContext& c) {
  const TensorExpr& x = c.input(0);
  if (x.shape.size() != 2) c.fail("expected a matrix");
  const Expr scale = c.real("scale");
  c.output(x.element, x.shape,
           [x, scale](const std::vector<Index>& i) { return select(less(i[1], i[0]), scale * x.at(i), constant(0)); });
}

}  // namespace gopt::ir

namespace gopt {
namespace {

Result<Graph> parsed(const std::string& shape) {
  return parse_graph("graph g\n  input x : f32[" + shape +
                     "]\n  a = Neg(x)\n  b = ScaledBelow(a) {scale=3}\n  c = Exp(b)\n  output y = c\nend\n");
}

TEST(AddedOperator, IsReadPrintedAndInferred) {
  const auto graph = parsed("n,4");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const std::string text = print_graph(*graph);
  EXPECT_NE(text.find("ScaledBelow(a) {scale=3"), std::string::npos) << text;
  const auto again = parse_graph(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->hash(), graph->hash());
}

TEST(AddedOperator, SaysWhatItDoesNotTake) {
  const auto graph = parsed("4");
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.error().message.find("expected a matrix"), std::string::npos) << graph.error().message;
  EXPECT_NE(graph.error().message.find("ScaledBelow"), std::string::npos) << graph.error().message;
}

TEST(AddedOperator, IsEvaluated) {
  const auto graph = parse_graph(
      "graph g\n  constant x = f32[2,3] {1, 2, 3, 4, 5, 6}\n  y = ScaledBelow(x) {scale=3}\n  output y = y\nend\n");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto outputs = interpret(*graph, {});
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  EXPECT_EQ((*outputs)[0].to_doubles(), (std::vector<double>{0, 0, 0, 12, 0, 0}));
}

TEST(AddedOperator, IsPlannedInOneKernelWithItsNeighbours) {
  const auto graph = parsed("8,8");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto costs = analytic_kernel_costs(Roofline{});
  const auto plan = make_plan(*graph, Target{}, *costs);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->kernels.size(), 1u) << print_plan(*plan);
}

}  // namespace
}  // namespace gopt
