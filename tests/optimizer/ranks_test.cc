// Rules at any rank in graphs of ranks 2 to 6: permutations and sets of axes are bound from the graph's attributes, and
// what the right side makes of them is computed from these.
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <random>
#include <sstream>

#include "anything_else.h"
#include "gopt/interpreter.h"
#include "gopt/optimizer.h"
#include "gopt/text.h"
#include "matching/pattern.h"
#include "random_graph.h"
#include "rules.h"

namespace gopt {
namespace {

RewriteRule shipped(const std::string& name) {
  for (const RewriteRule& rule : rules_of_file(GOPT_RULES_DIR "/ranks.rules"))
    if (rule.name == name) return rule;
  ADD_FAILURE() << "no rule " << name;
  return {};
}

// The graph after one application; the graph itself where the rule does not apply.
Graph rewritten(const Graph& graph, const RewriteRule& rule) {
  AnythingElse costs;
  SearchOptions options;
  options.max_steps = 1;
  options.disabled_passes = pass_names();
  const auto result = optimize(graph, {rule}, costs, options);
  EXPECT_TRUE(result.ok());
  return result.ok() ? result->graph : graph;
}

void expect_same_values(const Graph& before, const Graph& after, std::mt19937_64& random) {
  const auto inputs = random_inputs(random, before);
  const auto a = interpret(before, inputs), b = interpret(after, inputs);
  ASSERT_TRUE(a.ok() && b.ok());
  for (size_t k = 0; k < a->size(); k++) {
    const auto x = (*a)[k].to_doubles(), y = (*b)[k].to_doubles();
    ASSERT_EQ((*a)[k].dims(), (*b)[k].dims());
    for (size_t i = 0; i < x.size(); i++) ASSERT_NEAR(x[i], y[i], 1e-4);
  }
}

Graph graph_of(const std::string& lines) {
  const auto graph = parse_graph("graph main\n" + lines + "end\n");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message) << lines;
  return *graph;
}

std::vector<int> shuffled(int rank, std::mt19937_64& random) {
  std::vector<int> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

template <class T>
std::string listed(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return "[" + text + "]";
}

const NodePtr* only_node(const Graph& graph, OpKind op) {
  const NodePtr* found = nullptr;
  for (const NodePtr& node : graph.nodes()) {
    if (!node->is(op)) continue;
    if (found) return nullptr;
    found = &node;
  }
  return found;
}

class EveryRank : public ::testing::TestWithParam<int> {
 protected:
  int rank() const { return GetParam(); }
  // Extents 2, 3, 4, 2, 1, ...
  std::string input(const std::string& name) const {
    std::vector<int> extents;
    for (int axis = 0; axis < rank(); axis++)
      extents.push_back(std::vector<int>{2, 3, 4, 2, 1, 3}[static_cast<size_t>(axis)]);
    return "input " + name + " : f32" + listed(extents) + "\n";
  }
  std::mt19937_64 random_{7};
};

TEST_P(EveryRank, TwoTranspositionsBecomeTheirProduct) {
  const RewriteRule rule = shipped("ranks-transpose-of-transpose");
  for (int draw = 0; draw < 5; draw++) {
    const std::vector<int> p = shuffled(rank(), random_), q = shuffled(rank(), random_);
    const Graph graph = graph_of(input("x") + "y = Transpose(x) {perm=" + listed(p) +
                                 "}\nz = Transpose(y) {perm=" + listed(q) + "}\noutput z = z\n");
    const Graph after = rewritten(graph, rule);
    const NodePtr* made = only_node(after, OpKind::Transpose);
    ASSERT_TRUE(made);
    std::vector<Index> expected;
    for (int place : q) expected.emplace_back(p[static_cast<size_t>(place)]);
    EXPECT_EQ(std::get<std::vector<Index>>((*made)->attributes.at("perm")), expected);
    expect_same_values(graph, after, random_);
  }
}

TEST_P(EveryRank, ReducedAxesAreThoseBeforeTheTransposition) {
  const RewriteRule rule = shipped("ranks-reduce-max-of-transpose");
  for (int draw = 0; draw < 5; draw++) {
    const std::vector<int> p = shuffled(rank(), random_);
    std::vector<int> axes = shuffled(rank(), random_);
    axes.resize(1 + random_() % axes.size());
    const Graph graph = graph_of(input("x") + "y = Transpose(x) {perm=" + listed(p) +
                                 "}\nz = ReduceMax(y) {axes=" + listed(axes) + "}\noutput z = z\n");
    const Graph after = rewritten(graph, rule);
    ASSERT_NE(after.hash(), graph.hash());
    EXPECT_TRUE(after.outputs()[0].value.node->is(OpKind::Transpose));
    expect_same_values(graph, after, random_);
  }
}

TEST_P(EveryRank, SlicesMoveThroughTranspositions) {
  const RewriteRule rule = shipped("ranks-slice-of-transpose");
  const std::vector<int> p = shuffled(rank(), random_);
  const std::vector<int> extents{2, 3, 4, 2, 1, 3};
  std::vector<int> axes(p.size()), ends;
  std::iota(axes.begin(), axes.end(), 0);
  for (int place : p) ends.push_back(std::max(1, extents[static_cast<size_t>(place)] - 1));
  const Graph graph = graph_of(input("x") + "y = Transpose(x) {perm=" + listed(p) +
                               "}\nz = Slice(y) {starts=" + listed(std::vector<int>(p.size(), 0)) +
                               ", ends=" + listed(ends) + ", axes=" + listed(axes) + "}\noutput z = z\n");
  const Graph after = rewritten(graph, rule);
  ASSERT_NE(after.hash(), graph.hash());
  expect_same_values(graph, after, random_);
}

TEST_P(EveryRank, ListsAreFoundOnBothSidesOfAnAxis) {
  const RewriteRule rule = shipped("ranks-slice-is-first");
  for (int axis = 0; axis < rank(); axis++) {
    const std::string at = std::to_string(axis),
                      extent = std::to_string(std::vector<int>{2, 3, 4, 2, 1, 3}[static_cast<size_t>(axis)]);
    const Graph graph =
        graph_of(input("x") + input("y") + "c = Concat(x, y) {axis=" + at + "}\nz = Slice(c) {starts=[0], ends=[" +
                 extent + "], axes=[" + at + "]}\nw = Relu(z)\noutput w = w\n");
    const Graph after = rewritten(graph, rule);
    EXPECT_FALSE(only_node(after, OpKind::Concat)) << axis;
    expect_same_values(graph, after, random_);
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks, EveryRank, ::testing::Range(2, 7));

// The permutation takes the joined axis elsewhere, so that it is none of the axes before it and of those after it.
TEST(RankPatterns, PlacesStayWithinTheirList) {
  const RewriteRule rule = shipped("ranks-split-of-transpose");
  const auto split_at = [](const std::string& perm) {
    return graph_of("input x : f32[4,2,4]\ny = Transpose(x) {perm=" + perm +
                    "}\na, b = Split(y) {axis=1, split=[1,1]}\nc = Relu(a)\nd = Relu(b)\noutput c = c\noutput d = d\n");
  };
  const Graph crossing = graph_of(
      "input x : f32[2,4,4]\ny = Transpose(x) {perm=[1,0,2]}\na, b = Split(y) {axis=1, split=[1,1]}\nc = Relu(a)\nd = "
      "Relu(b)\noutput c = c\noutput d = d\n");
  const Graph straight = split_at("[0,1,2]"), turned = split_at("[2,1,0]");
  EXPECT_NE(rewritten(straight, rule).hash(), straight.hash());
  EXPECT_EQ(rewritten(turned, rule).hash(), turned.hash());
  EXPECT_EQ(rewritten(crossing, rule).hash(), crossing.hash());
}

TEST(RankPatterns, AreOfTheRanksThatAreAskedFor) {
  const RewriteRule rule = shipped("ranks-concat-of-concat");  // an axis between two lists
  for (int rank = 1; rank <= 6; rank++) {
    const auto patterns = optimizer::compile_rule(rule, rank);
    ASSERT_TRUE(patterns.ok());
    EXPECT_EQ(patterns->size(), static_cast<size_t>(rank * (rank + 1) / 2));
  }
}

}  // namespace
}  // namespace gopt
