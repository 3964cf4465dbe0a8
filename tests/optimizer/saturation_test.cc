// Equality saturation as a search: joined rules, ways uphill, cycles, limits; and that results compute what they did.
#include "search/saturation.h"

#include <gtest/gtest.h>

#include <random>

#include "count_cost.h"
#include "derivation_rules.h"
#include "gopt/interpreter.h"
#include "gopt/text.h"
#include "random_graph.h"
#include "search_rules.h"

namespace gopt {
namespace {

Graph graph_of(const std::string& lines) {
  const auto graph = parse_graph("graph g\n" + lines + "end\n");
  if (!graph.ok()) throw std::runtime_error(graph.error().message);
  return *graph;
}

SearchOptions by_saturation() {
  SearchOptions options = untimed();
  options.search = SearchKind::Saturation;
  return options;
}

OptimizeResult run(const Graph& graph, const std::string& rules, const SearchOptions& options) {
  CountCost costs;
  const auto result = optimize(graph, rules_in(rules), costs, options);
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return *result;
}

// Two steps up and one down are one choice; both rules are in the trace, since the result rests on both.
TEST(Saturation, NeedsNoAlphaToGoUphill) {
  const Graph graph = graph_of("  input x : f32[3]\n  a = Tanh(x)\n  b = Exp(a)\n  output y = b\n");
  const OptimizeResult result = run(graph, kSearchRules, by_saturation());
  EXPECT_EQ(result.after.kernels, 1);
  ASSERT_EQ(result.applied.size(), 2u);
  EXPECT_EQ(result.applied[0].rule, "uphill");
  EXPECT_EQ(result.applied[1].rule, "downhill");
}

TEST(Saturation, ARuleThatIsRefusedIsNotReliedOn) {
  SearchOptions options = by_saturation();
  options.confirm = [](const RewriteRule& rule) {
    return rule.name == "downhill" ? std::optional<std::string>("forged") : std::nullopt;
  };
  const Graph graph = graph_of("  input x : f32[3]\n  a = Tanh(x)\n  b = Exp(a)\n  output y = b\n");
  const OptimizeResult result = run(graph, kSearchRules, options);
  EXPECT_TRUE(result.applied.empty());
  EXPECT_EQ(result.after.kernels, 2);
  ASSERT_EQ(result.refused.size(), 1u);
}

const char* const kSiblings =
    "  input x : f32[2,3]\n  constant u = f32[3,2] {1,2,3,4,5,6}\n  constant v = f32[3,1] {1,2,3}\n"
    "  constant w = f32[3,2] {7,8,9,10,11,12}\n";

// A third sibling is joined with the product of the first two, which only that join has made.
TEST(Saturation, SiblingsAreMergedByARuleOfSeveralOutputs) {
  const Graph graph = graph_of(std::string(kSiblings) +
                               "  a = MatMul(x, u)\n  b = MatMul(x, v)\n  c = MatMul(x, w)\n"
                               "  output a = a\n  output b = b\n  output c = c\n");
  const OptimizeResult result = run(graph, kMerge, by_saturation());
  int products = 0;
  for (const NodePtr& node : result.graph.nodes()) products += node->is(OpKind::MatMul);
  EXPECT_EQ(products, 1);
  EXPECT_TRUE(validate(result.graph).ok());
  std::mt19937_64 random(3);
  const auto inputs = random_inputs(random, graph);
  const auto before = interpret(graph, inputs), after = interpret(result.graph, inputs);
  ASSERT_TRUE(before.ok() && after.ok());
  for (size_t k = 0; k < before->size(); k++) {
    const auto a = (*before)[k].to_doubles(), b = (*after)[k].to_doubles();
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); i++) EXPECT_NEAR(a[i], b[i], 1e-4);
  }
}

// A value that is found to equal what it is made of: the class uses itself, the graph must not.
TEST(Saturation, NoGraphUsesItself) {
  const std::string twice = R"(rule negated-twice
  var x f32[...]
  left
    a = Neg(x)
    b = Neg(a)
    return b
  right
    return x
end
)";
  const Graph graph =
      graph_of("  input x : f32[3]\n  e = Exp(x)\n  a = Neg(e)\n  b = Neg(a)\n  c = Neg(b)\n  output y = c\n");
  const OptimizeResult result = run(graph, twice, by_saturation());
  EXPECT_EQ(result.after.kernels, 2);
  EXPECT_TRUE(validate(result.graph).ok());
}

TEST(Saturation, ALimitOfTheEGraphEndsIt) {
  SearchOptions options = by_saturation();
  options.saturation.nodes = 6;
  const Graph graph =
      graph_of(std::string(kSiblings) + "  a = MatMul(x, u)\n  b = MatMul(x, v)\n  output a = a\n  output b = b\n");
  const OptimizeResult small = run(graph, kMerge, options);
  EXPECT_EQ(small.stop_reason, StopReason::EGraphLimit);
  EXPECT_LE(small.after.time_ms, small.before.time_ms);
  options.budget_seconds = 0;
  EXPECT_EQ(run(graph, kMerge, options).stop_reason, StopReason::TimeLimit);
}

TEST(Saturation, TwiceIsTheSame) {
  const Graph graph = graph_of(std::string(kSiblings) +
                               "  a = MatMul(x, u)\n  b = MatMul(x, v)\n  c = MatMul(x, w)\n"
                               "  output a = a\n  output b = b\n  output c = c\n");
  const OptimizeResult first = run(graph, kMerge, by_saturation()), second = run(graph, kMerge, by_saturation());
  EXPECT_EQ(first.graph.hash(), second.graph.hash());
  EXPECT_EQ(first.rules_tried, second.rules_tried);
  EXPECT_EQ(first.graphs_seen, second.graphs_seen);
}

// x = f(y), x2 = f(y2): once y and y2 are one, so are these.
TEST(Saturation, EqualArgumentsMakeEqualApplications) {
  const Graph graph = graph_of(
      "  input x : f32[3]\n  input z : f32[3]\n  a = Exp(x)\n  b = Exp(z)\n"
      "  output a = a\n  output b = b\n");
  optimizer::GraphEqualities all(graph);
  optimizer::EqualityGraph& equalities = all.equalities;
  const auto id = [&](const Value& value) { return all.ids.at(value); };
  const Value a = graph.outputs()[0].value, b = graph.outputs()[1].value;
  equalities.restore_congruence();
  EXPECT_NE(equalities.find(id(a)), equalities.find(id(b)));
  equalities.merge(id(graph.inputs()[0]), id(graph.inputs()[1]), {0, 0, {}, {}});
  equalities.restore_congruence();
  EXPECT_EQ(equalities.find(id(a)), equalities.find(id(b)));
}

}  // namespace
}  // namespace gopt
