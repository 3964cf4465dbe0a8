// A pass is a file and a row: the optimizer, built with one row more in passes.def (CMakeLists.txt here adds it), runs
// the pass of this file, tells of it by name, and can be told to leave it out.
#include <gtest/gtest.h>

#include "count_cost.h"
#include "gopt/text.h"
#include "passes/passes.h"

namespace gopt {
namespace optimizer {

// Relu of Relu is Relu.
Replacements drop_second_relu(const Graph& graph) {
  Replacements replacements;
  for (const NodePtr& node : graph.nodes())
    if (node->is(OpKind::Relu) && node->inputs[0].node->is(OpKind::Relu))
      replacements.emplace_back(Value{node, 0}, node->inputs[0]);
  return replacements;
}

}  // namespace optimizer

namespace {

OptimizeResult optimized(const std::vector<std::string>& disabled) {
  const auto graph =
      parse_graph("graph g\n  input x : f32[3]\n  a = Relu(x)\n  b = Relu(a)\n  c = Neg(b)\n  output y = c\nend\n");
  SearchOptions options = untimed();
  options.disabled_passes = disabled;
  CountCost costs;
  auto result = optimize(*graph, {}, costs, options);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return *std::move(result);
}

size_t relus(const Graph& graph) {
  size_t count = 0;
  for (const NodePtr& node : graph.nodes()) count += node->is(OpKind::Relu);
  return count;
}

TEST(AddedPass, IsAFileAndARow) {
  EXPECT_EQ(pass_names().back(), "drop-second-relu");
  const OptimizeResult result = optimized({});
  EXPECT_EQ(relus(result.graph), 1U);
  EXPECT_TRUE(std::any_of(result.passes.begin(), result.passes.end(),
                          [](const PassNote& note) { return note.pass == "drop-second-relu" && note.changed; }));
}

TEST(AddedPass, IsLeftOutByName) { EXPECT_EQ(relus(optimized({"drop-second-relu"}).graph), 2U); }

}  // namespace
}  // namespace gopt
