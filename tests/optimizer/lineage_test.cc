// What became of a graph's nodes, and when a search found what it found.
#include <gtest/gtest.h>

#include "count_cost.h"
#include "gopt/text.h"
#include "rules.h"
#include "search_rules.h"

namespace gopt {
namespace {

struct Optimized {
  Graph before;
  OptimizeResult result;

  std::string name_of(const Graph& graph, NodeId id) const {
    const Node& node = *graph.node(id);
    return node.output_names.empty() || node.output_names[0].empty() ? node.name : node.output_names[0];
  }
  std::vector<std::string> originals(const std::vector<NodeId>& ids) const {
    std::vector<std::string> names;
    for (NodeId id : ids) names.push_back(name_of(before, id));
    return names;
  }
  // Of the result's node of that operator.
  std::vector<std::string> origins(OpKind op) const {
    for (size_t node = 0; node < result.graph.nodes().size(); node++)
      if (result.graph.nodes()[node]->is(op)) return originals(result.origins.at(node));
    return {"no such node"};
  }
};

Optimized optimized(const std::string& text, double alpha = 3) {
  auto graph = parse_graph("graph g\n" + text + "\nend");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  SearchOptions options = untimed();
  options.alpha = alpha;
  CountCost costs;
  auto result = optimize(*graph, rules_in(kSearchRules), costs, options);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return {*graph, *result};
}

using Names = std::vector<std::string>;

TEST(Lineage, WhatNothingChangesStandsForItself) {
  const Optimized o = optimized("input x : f32[3]\ns = Sin(x)\nc = Cos(s)\noutput y = c");
  ASSERT_EQ(o.result.origins.size(), o.before.nodes().size());
  for (uint32_t node = 0; node < o.before.nodes().size(); node++)
    EXPECT_EQ(o.result.origins[node], std::vector<NodeId>{NodeId{node}});
}

TEST(Lineage, ARewriteStandsForWhatItMatched) {
  const Optimized o = optimized("input x : f32[3]\ns = Sin(x)\na = Relu(s)\nb = Relu(a)\nc = Cos(b)\noutput y = c", 1);
  EXPECT_EQ(o.origins(OpKind::Relu), (Names{"a", "b"}));
  EXPECT_EQ(o.origins(OpKind::Sin), Names{"s"});
  EXPECT_EQ(o.origins(OpKind::Cos), Names{"c"}) << "made anew over another input, and still the same node";
  ASSERT_EQ(o.result.applied.size(), 1U);
  const AppliedRule& applied = o.result.applied[0];
  EXPECT_EQ(o.originals(applied.replaced), (Names{"a", "b"}));
  ASSERT_EQ(applied.made.size(), 1U);
  EXPECT_TRUE(o.result.graph.node(applied.made[0])->is(OpKind::Relu));
}

// Tanh becomes three nodes, of which and Exp one is made: that one has come of both, and of both rewrites.
TEST(Lineage, IsFollowedThroughSteps) {
  const Optimized o = optimized("input x : f32[3]\nt = Tanh(x)\ne = Exp(t)\noutput y = e");
  EXPECT_EQ(o.origins(OpKind::Sigmoid), (Names{"t", "e"}));
  ASSERT_EQ(o.result.applied.size(), 2U);
  EXPECT_EQ(o.originals(o.result.applied[0].replaced), Names{"t"});
  EXPECT_EQ(o.originals(o.result.applied[1].replaced), (Names{"t", "e"}));
  for (const AppliedRule& applied : o.result.applied) {
    ASSERT_EQ(applied.made.size(), 1U) << applied.rule;
    EXPECT_TRUE(o.result.graph.node(applied.made[0])->is(OpKind::Sigmoid)) << applied.rule;
  }
  EXPECT_EQ(o.result.applied[0].step, 0);
  EXPECT_EQ(o.result.applied[1].step, 1);
}

TEST(Lineage, WhatIsAppliedTogetherIsOneStep) {
  const Optimized o =
      optimized("input x : f32[3]\na = Relu(x)\nb = Relu(a)\ns = Sin(b)\nc = Relu(s)\nd = Relu(c)\noutput y = d", 1);
  ASSERT_EQ(o.result.applied.size(), 2U);
  EXPECT_EQ(o.result.applied[0].step, o.result.applied[1].step);
  EXPECT_NE(o.result.applied[0].made, o.result.applied[1].made);
}

TEST(Lineage, PassesAreFollowed) {
  const Optimized o = optimized(
      "input x : f32[3]\ninput z : f32[3]\ni = Identity(x)\ns = Sin(i)\np = Add(s, z)\nq = Add(z, s)\nm = Mul(p, "
      "q)\noutput y = m");
  EXPECT_EQ(o.origins(OpKind::Sin), Names{"s"});
  EXPECT_EQ(o.origins(OpKind::Add), (Names{"p", "q"})) << "the same sum twice";
  EXPECT_EQ(o.origins(OpKind::Mul), Names{"m"});
}

TEST(Trajectory, HasEveryNewBest) {
  const OptimizeResult found =
      optimized("input x : f32[3]\na = Relu(x)\nb = Relu(a)\nt = Tanh(b)\ne = Exp(t)\noutput y = e").result;
  const std::vector<SearchPoint>& points = found.trajectory;
  ASSERT_GE(points.size(), 3U);
  EXPECT_EQ(points.front().step, 0);
  EXPECT_EQ(points.front().graphs_seen, 1);
  EXPECT_EQ(points.front().best_ms, found.before.time_ms);
  EXPECT_EQ(points.back().best_ms, found.after.time_ms);
  EXPECT_EQ(points.back().step, found.steps);
  EXPECT_EQ(points.back().graphs_seen, found.graphs_seen);
  for (size_t k = 1; k < points.size(); k++) {
    EXPECT_GE(points[k].step, points[k - 1].step);
    EXPECT_GE(points[k].seconds, points[k - 1].seconds);
    EXPECT_GE(points[k].graphs_seen, points[k - 1].graphs_seen);
    if (k + 1 < points.size()) {
      EXPECT_LT(points[k].best_ms, points[k - 1].best_ms);
    }
  }
}

TEST(Trajectory, IsEmptyWhereNothingIsSearched) {
  auto graph = parse_graph("graph g\ninput x : f32[3]\na = Relu(x)\noutput y = a\nend");
  ASSERT_TRUE(graph.ok());
  SearchOptions options = untimed();
  options.search = SearchKind::None;
  CountCost costs;
  const auto result = optimize(*graph, rules_in(kSearchRules), costs, options);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->trajectory.empty());
  EXPECT_EQ(result->origins.size(), graph->nodes().size());
}

}  // namespace
}  // namespace gopt
