// What a search did, done again without searching: the same end by the same rewrites.
#include <gtest/gtest.h>

#include <algorithm>

#include "count_cost.h"
#include "gopt/text.h"
#include "instance.h"
#include "random_graph.h"
#include "rules.h"
#include "search_rules.h"

namespace gopt {
namespace {

OptimizeResult run(const Graph& graph, const std::vector<RewriteRule>& rules, const SearchOptions& options) {
  CountCost costs;
  auto result = optimize(graph, rules, costs, options);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? *result : OptimizeResult();
}

std::vector<RewriteRule> applied_among(const std::vector<RewriteRule>& rules, const OptimizeResult& result) {
  std::vector<RewriteRule> some;
  for (const RewriteRule& rule : rules)
    if (std::ranges::any_of(result.applied, [&](const AppliedRule& a) { return a.rule == rule.name; }))
      some.push_back(rule);
  return some;
}

void expect_same(const OptimizeResult& found, const OptimizeResult& again, const Graph& graph) {
  EXPECT_EQ(again.graph.hash(), found.graph.hash()) << print_graph(graph) << "became\n"
                                                    << print_graph(found.graph) << "and then\n"
                                                    << print_graph(again.graph);
  EXPECT_EQ(again.stop_reason, StopReason::Followed);
  EXPECT_EQ(again.graphs_seen, 0);
  ASSERT_EQ(again.applied.size(), found.applied.size());
  for (size_t k = 0; k < found.applied.size(); k++) {
    EXPECT_EQ(again.applied[k].rule, found.applied[k].rule);
    EXPECT_EQ(again.applied[k].matched_nodes, found.applied[k].matched_nodes);
    EXPECT_EQ(again.applied[k].replaced, found.applied[k].replaced);
    EXPECT_EQ(again.applied[k].made, found.applied[k].made);
    EXPECT_NEAR(again.applied[k].cost_after_ms, found.applied[k].cost_after_ms, 1e-9);
  }
}

// With all rules, and with those alone that it names. Whether there were any.
bool expect_done_again(const Graph& graph, const std::vector<RewriteRule>& rules, const SearchOptions& options) {
  const OptimizeResult found = run(graph, rules, options);
  EXPECT_TRUE(found.trail);
  if (!found.trail) return false;
  SearchOptions along = options;
  along.trail = &*found.trail;
  expect_same(found, run(graph, rules, along), graph);
  if (!found.applied.empty()) expect_same(found, run(graph, applied_among(rules, found), along), graph);
  return !found.applied.empty();
}

TEST(Trail, LeadsToTheSameGraphsByShippedRules) {
  std::vector<RewriteRule> rules;
  for (const char* file : {"core.rules", "siblings.rules", "folds.rules"}) {
    auto database = load_rules(std::string(GOPT_RULES_DIR "/") + file);
    ASSERT_TRUE(database.ok()) << database.error().message;
    rules.insert(rules.end(), database->rules.begin(), database->rules.end());
  }
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  SearchOptions options = untimed();
  options.alpha = 2;
  options.max_steps = 40;
  constexpr int kWanted = 15, kMostTrials = 500;
  int rewritten = 0;
  for (int trial = 0; rewritten < kWanted && trial < kMostTrials; trial++) {
    const auto instance = random_instance(random, rules[random() % rules.size()]);
    options.search = trial % 4 == 0 ? SearchKind::Beam : trial % 4 == 1 ? SearchKind::Greedy : SearchKind::Backtracking;
    const Graph graph = instance && trial % 2 ? *instance : random_graph(random, 4 + static_cast<int>(random() % 8));
    rewritten += expect_done_again(graph, rules, options);
  }
  EXPECT_EQ(rewritten, kWanted);
}

// Sixty blocks, in each something to do: a graph of many windows, whose borders are searched, too.
TEST(Trail, LeadsThroughWindows) {
  GraphBuilder builder;
  Value x = builder.input("x", {ElementType::Float32, Shape{3}});
  for (int k = 0; k < 60; k++) {
    const Value left = *builder.apply(OpKind::Relu, {*builder.apply(OpKind::Relu, {*builder.apply(OpKind::Exp, {x})})});
    x = *builder.apply(OpKind::Add, {left, *builder.apply(OpKind::Exp, {*builder.apply(OpKind::Neg, {x})})});
  }
  builder.output("y", x);
  const Graph graph = builder.build();
  const OptimizeResult found = run(graph, rules_in(kSearchRules), untimed());
  ASSERT_TRUE(found.trail);
  ASSERT_GT(found.trail->windows.size(), 3u);
  EXPECT_GE(found.trail->windows.front().sweep, 0) << "it is cut into windows";
  EXPECT_TRUE(expect_done_again(graph, rules_in(kSearchRules), untimed()));
}

// As who edits a file may leave them.
TEST(Trail, WindowsOutOfOrderAreAnError) {
  GraphBuilder builder;
  Value x = builder.input("x", {ElementType::Float32, Shape{3}});
  for (int k = 0; k < 60; k++)
    x = *builder.apply(OpKind::Exp, {*builder.apply(OpKind::Relu, {*builder.apply(OpKind::Relu, {x})})});
  builder.output("y", x);
  const Graph graph = builder.build();
  const std::vector<RewriteRule> rules = rules_in(kSearchRules);
  const OptimizeResult found = run(graph, rules, untimed());
  ASSERT_TRUE(found.trail);
  ASSERT_GT(found.trail->windows.size(), 1u);
  ASSERT_EQ(found.trail->windows[0].sweep, found.trail->windows[1].sweep);
  SearchTrail twice = *found.trail, swapped = twice, back = twice;
  twice.windows.insert(twice.windows.begin(), twice.windows.front());
  std::swap(swapped.windows[0], swapped.windows[1]);
  back.windows.front().sweep = 2;
  for (const SearchTrail& trail : {twice, swapped, back}) {
    SearchOptions along = untimed();
    along.trail = &trail;
    CountCost costs;
    EXPECT_FALSE(optimize(graph, rules, costs, along).ok());
  }
}

TEST(Trail, OfAnotherGraphIsAnError) {
  const auto graph_of = [](const std::string& text) { return *parse_graph("graph g\n" + text + "\nend"); };
  const OptimizeResult found =
      run(graph_of("input x : f32[3]\na = Relu(x)\nb = Relu(a)\noutput y = b"), rules_in(kSearchRules), untimed());
  ASSERT_EQ(found.applied.size(), 1u);
  SearchOptions along = untimed();
  along.trail = &*found.trail;
  CountCost costs;
  EXPECT_FALSE(optimize(graph_of("input x : f32[3]\na = Relu(x)\nb = Exp(a)\noutput y = b"), rules_in(kSearchRules),
                        costs, along)
                   .ok());
}

TEST(Trail, ThereIsNoneOfSaturation) {
  SearchOptions options = untimed();
  options.search = SearchKind::Saturation;
  EXPECT_FALSE(run(*parse_graph("graph g\ninput x : f32[3]\na = Relu(x)\nb = Relu(a)\noutput y = b\nend"),
                   rules_in(kSearchRules), options)
                   .trail);
}

}  // namespace
}  // namespace gopt
