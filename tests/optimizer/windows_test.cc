// Large graphs searched in windows: how they are cut, that nothing is lost, and that threads change nothing.
#include "search/windows.h"

#include <gtest/gtest.h>

#include <set>

#include "count_cost.h"
#include "gopt/excerpt.h"
#include "gopt/text.h"
#include "matching/compensation.h"
#include "rules.h"

namespace gopt::optimizer {
namespace {

const char* const kRules = R"(
rule relu-twice
  var x f32[...]
  left
    a = Relu(x)
    b = Relu(a)
    return b
  right
    c = Relu(x)
    return c
end
rule add-of-neg
  var x f32[...]
  var y f32[...]
  left
    a = Neg(y)
    b = Add(x, a)
    return b
  right
    c = Sub(x, y)
    return c
end
)";

// Blocks of two branches that meet in a sum; each block has one thing to rewrite on either branch.
Graph blocks(int count) {
  GraphBuilder builder;
  Value x = builder.input("x", {ElementType::Float32, Shape{3}});
  for (int k = 0; k < count; k++) {
    const Value left = *builder.apply(OpKind::Relu, {*builder.apply(OpKind::Relu, {*builder.apply(OpKind::Exp, {x})})});
    const Value right = *builder.apply(OpKind::Neg, {*builder.apply(OpKind::Tanh, {x})});
    x = *builder.apply(OpKind::Add, {left, right});
  }
  builder.output("y", x);
  return builder.build();
}

OptimizeResult run(const Graph& graph, SearchOptions options) {
  CountCost costs;
  auto result = optimize(graph, rules_in(kRules), costs, options);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? *result : OptimizeResult();
}

// The nodes that a path from one of the window's outputs reaches.
std::set<NodeId> reached_from(const Graph& graph, const std::vector<NodeId>& window) {
  std::set<NodeId> reached;
  std::vector<NodeId> open(window.begin(), window.end());
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    for (NodeId user : graph.users()[static_cast<uint32_t>(id)])
      if (reached.insert(user).second) open.push_back(user);
  }
  return reached;
}

TEST(Windows, HoldEachNodeOnceAndNoPathComesBack) {
  const Graph graph = blocks(60);
  for (const bool around_borders : {false, true}) {
    const auto windows = around_borders ? windows_around_borders(graph) : windows_of(graph);
    ASSERT_GT(windows.size(), 3u);
    std::set<NodeId> seen;
    for (const auto& window : windows) {
      const std::set<NodeId> own(window.begin(), window.end());
      for (NodeId id : window) EXPECT_TRUE(seen.insert(id).second);
      std::vector<NodeId> outside;
      for (NodeId id : reached_from(graph, window))
        if (!own.contains(id)) outside.push_back(id);
      for (NodeId id : reached_from(graph, outside)) EXPECT_FALSE(own.contains(id));
    }
    if (!around_borders) {
      EXPECT_EQ(seen.size(), 60u * 6);
    }
  }
}

TEST(Windows, BordersLieWhereFewValuesCross) {
  const Graph graph = blocks(60);
  auto windows = windows_of(graph);
  const auto around = windows_around_borders(graph);
  ASSERT_EQ(around.size() + 1, windows.size());
  windows.pop_back();
  for (size_t k = 0; k < windows.size(); k++) {
    const NodeId last = windows[k].back();
    EXPECT_TRUE(graph.node(last)->is(OpKind::Add)) << "one value crosses behind a sum, two elsewhere";
    EXPECT_EQ(std::count(around[k].begin(), around[k].end(), last), 1);
    EXPECT_NE(around[k].back(), last);
  }
}

// Two nodes that belong together, with sixty levels between them.
TEST(Windows, WhatIsFarApartIsFound) {
  GraphBuilder builder;
  const Value x = builder.input("x", {ElementType::Float32, Shape{3}});
  const Value far = *builder.apply(OpKind::Neg, {x});
  Value near = x;
  for (int k = 0; k < 150; k++) near = *builder.apply(k % 2 ? OpKind::Exp : OpKind::Tanh, {near});
  builder.output("y", *builder.apply(OpKind::Add, {near, far}));
  const OptimizeResult result = run(builder.build(), untimed());
  ASSERT_EQ(result.applied.size(), 1u);
  EXPECT_EQ(result.applied[0].rule, "add-of-neg");
}

TEST(Excerpt, PutBackIsTheGraph) {
  const Graph graph = blocks(30);
  std::vector<Excerpt> excerpts;
  for (const auto& window : windows_of(graph)) excerpts.push_back(excerpt_of(graph, {window.begin(), window.end()}));
  std::vector<Replacement> replacements;
  for (const Excerpt& e : excerpts) {
    EXPECT_TRUE(validate(e.graph).ok());
    replacements.push_back({&e, &e.graph});
  }
  const auto again = with_replaced(graph, replacements);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->graph.hash(), graph.hash());
}

TEST(Windows, EverythingIsFoundWhereverBordersLie) {
  for (const int count : {17, 18, 40, 61}) {
    const OptimizeResult result = run(blocks(count), untimed());
    EXPECT_EQ(result.after.kernels, 4 * count);
    EXPECT_EQ(result.applied.size(), 2u * static_cast<size_t>(count));
    EXPECT_TRUE(validate(result.graph).ok());
    EXPECT_EQ(result.stop_reason, StopReason::Saturated);
  }
}

TEST(Windows, TheTraceAddsUpToTheGain) {
  const OptimizeResult result = run(blocks(40), untimed());
  ASSERT_FALSE(result.applied.empty());
  EXPECT_NEAR(result.applied.front().cost_before_ms, result.before.time_ms, 1e-9);
  EXPECT_NEAR(result.applied.back().cost_after_ms, result.after.time_ms, 1e-9);
}

// Improvements of windows are told as such, and what they make of the graph as it is put together.
TEST(Windows, ImprovementsAreToldOfWindowsAndOfTheWhole) {
  std::vector<Improvement> found;
  SearchOptions options = untimed();
  options.workers = 4;
  options.improved = [&](const Improvement& improvement) { found.push_back(improvement); };
  const OptimizeResult result = run(blocks(40), options);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().step, 0);
  double whole_ms = result.before.time_ms;
  int in_windows = 0;
  for (const Improvement& improvement : found) {
    EXPECT_LE(improvement.after_ms, improvement.before_ms);
    in_windows += improvement.is_in_window;
    if (improvement.is_in_window) continue;
    EXPECT_EQ(improvement.before_ms, whole_ms);
    whole_ms = improvement.after_ms;
  }
  EXPECT_GT(in_windows, 2);
  EXPECT_EQ(whole_ms, result.after.time_ms);
  long improved = 0;
  for (const RuleTrials& trials : result.trials) improved += trials.improved;
  EXPECT_EQ(improved, in_windows);
}

// Of each block: the two Relus became one, the Neg and the Add became the Sub.
TEST(Windows, TheTraceKnowsItsNodes) {
  const Graph graph = blocks(40);
  const OptimizeResult result = run(graph, untimed());
  ASSERT_EQ(result.applied.size(), 80u);
  std::set<NodeId> replaced, made;
  for (const AppliedRule& use : result.applied) {
    for (NodeId id : use.replaced) EXPECT_TRUE(replaced.insert(id).second);
    ASSERT_EQ(use.made.size(), 1u);
    EXPECT_TRUE(made.insert(use.made[0]).second);
    EXPECT_EQ(op_info(result.graph.node(use.made[0])->op).name, use.rule == "relu-twice" ? "Relu" : "Sub");
  }
  EXPECT_EQ(replaced.size(), 160u);
  ASSERT_EQ(result.origins.size(), result.graph.nodes().size());
  for (uint32_t id = 0; id < result.origins.size(); id++) {
    const Node& node = *result.graph.node(NodeId{id});
    EXPECT_EQ(result.origins[id].size(), made.contains(NodeId{id}) ? 2u : 1u);
    if (!made.contains(NodeId{id})) {
      EXPECT_EQ(graph.node(result.origins[id][0])->op, node.op);
    }
  }
  EXPECT_GE(result.trajectory.size(), 3u);
  EXPECT_EQ(result.trajectory.front().best_ms, result.before.time_ms);
  EXPECT_EQ(result.trajectory.back().best_ms, result.after.time_ms);
}

TEST(Windows, ThreadsChangeNothing) {
  const Graph graph = blocks(50);
  for (const int steps : {1000, 40, 7}) {
    SearchOptions options = untimed();
    options.max_steps = steps;
    const OptimizeResult one = run(graph, options);
    EXPECT_LE(one.steps, steps);
    for (const int workers : {2, 4}) {
      options.workers = workers;
      const OptimizeResult more = run(graph, options);
      EXPECT_EQ(print_graph(more.graph), print_graph(one.graph));
      EXPECT_EQ(more.steps, one.steps);
      EXPECT_EQ(more.rules_tried, one.rules_tried);
      ASSERT_EQ(more.applied.size(), one.applied.size());
      for (size_t k = 0; k < one.applied.size(); k++) EXPECT_EQ(more.applied[k].rule, one.applied[k].rule);
    }
  }
}

TEST(Windows, WorkGrowsWithTheGraphAndNoFaster) {
  const long once = run(blocks(50), untimed()).rules_tried, fourfold = run(blocks(200), untimed()).rules_tried;
  EXPECT_GT(fourfold, 2 * once);
  EXPECT_LT(fourfold, 6 * once);
}

TEST(Windows, ACompensatedSumIsNotCut) {
  // Fifty TwoSums in a row; a cut within one would let x + c - x be taken for c.
  GraphBuilder builder;
  Value x = builder.input("x", {ElementType::Float32, Shape{3}});
  const Value c = builder.input("c", {ElementType::Float32, Shape{3}});
  for (int k = 0; k < 50; k++) {
    const Value sum = *builder.apply(OpKind::Add, {x, c});
    const Value back = *builder.apply(OpKind::Sub, {sum, x});
    const Value lost = *builder.apply(OpKind::Sub, {c, back});
    x = *builder.apply(OpKind::Exp, {*builder.apply(OpKind::Add, {sum, lost})});
  }
  builder.output("y", x);
  const Graph graph = builder.build();
  const std::string rules = R"(
rule there-and-back
  var x f32[...]
  var c f32[...]
  left
    a = Add(x, c)
    b = Sub(a, x)
    return b
  right
    return c
end
)";
  CountCost costs;
  const auto result = optimize(graph, rules_in(rules), costs, untimed());
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_TRUE(result->applied.empty());
}

}  // namespace
}  // namespace gopt::optimizer
