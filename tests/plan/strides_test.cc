// What only moves elements, as steps through memory: axes that a reshape merges stay several in memory until another
// takes them apart.
#include "../../planner/strides.h"

#include <gtest/gtest.h>

#include "gopt/text.h"

namespace gopt::planner {
namespace {

// Nothing where an axis goes by several steps.
std::optional<MemorySteps> single_steps(const FactoredSteps& steps) {
  MemorySteps result{steps.offset, {}};
  for (const std::vector<AxisPart>& axis : steps.axes) {
    if (axis.size() > 1) return std::nullopt;
    result.axes.push_back(axis.empty() ? Index(1) : axis[0].step);
  }
  return result;
}

// Of the chain of moves that the graph's output is, from its input.
std::optional<FactoredSteps> steps_of(const std::string& text, const Shape& dims) {
  const auto graph = parse_graph("graph moves\n" + text + "\noutput y = y\nend\n");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  std::vector<Value> path;
  for (Value value = graph->outputs()[0].value; !value.node->is(OpKind::Input); value = value.node->inputs[0])
    path.push_back(value);
  std::optional<FactoredSteps> steps = factored_steps(dims);
  for (size_t k = path.size(); k-- > 0 && steps;) steps = steps_through(path[k], *steps);
  return steps;
}

TEST(Strides, MergedAxesAreTakenApartAgain) {
  const std::string merged =
      "input x : f32[5,2,9]\na = Slice(x) {starts=[3], ends=[9], axes=[2], steps=[1]}\n"
      "b = Reshape(a) {shape=[5,12]}\n";
  const auto joined = steps_of(merged + "y = Transpose(b) {perm=[1,0]}", {5, 2, 9});
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->axes[0].size(), 2U);
  EXPECT_FALSE(single_steps(*joined));
  const auto apart = steps_of(merged + "c = Transpose(b) {perm=[1,0]}\ny = Reshape(c) {shape=[2,3,2,5]}", {5, 2, 9});
  ASSERT_TRUE(apart);
  const auto single = single_steps(*apart);
  ASSERT_TRUE(single);
  EXPECT_EQ(single->offset, Index(3));
  EXPECT_EQ(single->axes, (std::vector<Index>{9, 2, 1, 18}));
}

TEST(Strides, WhatIsCutElsewhereHasNone) {
  const std::string merged =
      "input x : f32[5,2,9]\na = Slice(x) {starts=[3], ends=[9], axes=[2], steps=[1]}\n"
      "b = Reshape(a) {shape=[5,12]}\n";
  EXPECT_FALSE(steps_of(merged + "y = Reshape(b) {shape=[5,3,4]}", {5, 2, 9}));
  EXPECT_FALSE(steps_of(merged + "y = Slice(b) {starts=[1], ends=[9], axes=[1], steps=[1]}", {5, 2, 9}));
  EXPECT_TRUE(steps_of("input x : f32[5,12]\ny = Reshape(x) {shape=[5,3,4]}", {5, 12}));
}

TEST(Strides, OfOpenExtentsTheyAreExpressions) {
  const Index n = symbol("n"), m = symbol("m"), p = symbol("p");
  const auto apart = steps_of(
      "input x : f32[n,m,12]\na = Slice(x) {starts=[4], ends=[12], axes=[2], steps=[1]}\n"
      "b = Reshape(a) {shape=[n,m,2,4]}\ny = Transpose(b) {perm=[0,2,1,3]}",
      {n, m, 12});
  ASSERT_TRUE(apart);
  const auto single = single_steps(*apart);
  ASSERT_TRUE(single);
  EXPECT_EQ(single->offset, Index(4));
  EXPECT_EQ(single->axes, (std::vector<Index>{12 * m, 4, 12, 1}));
  // One axis of as many as two others: what is merged is taken apart by whole parts.
  const auto merged = steps_of(
      "input x : f32[n,2,m+p,8]\na = Transpose(x) {perm=[0,2,1,3]}\nb = Reshape(a) {shape=[n*(m+p),16]}\n"
      "y = Reshape(b) {shape=[n,m+p,4,4]}",
      {n, 2, m + p, 8});
  ASSERT_TRUE(merged);
  EXPECT_FALSE(single_steps(*merged));  // 16 lie in two pieces: four times four are twice two times four
  const auto whole = steps_of(
      "input x : f32[n,2,m+p,8]\na = Transpose(x) {perm=[0,2,1,3]}\nb = Reshape(a) {shape=[n*(m+p),16]}\n"
      "y = Reshape(b) {shape=[n,m+p,2,8]}",
      {n, 2, m + p, 8});
  ASSERT_TRUE(whole);
  EXPECT_EQ(single_steps(*whole)->axes, (std::vector<Index>{16 * (m + p), 8, 8 * (m + p), 1}));
  // From a place that sizes say.
  const auto last =
      steps_of("input x : f32[n,m,4]\ny = Slice(x) {starts=[m-1], ends=[m], axes=[1], steps=[1]}", {n, m, 4});
  ASSERT_TRUE(last);
  EXPECT_EQ(single_steps(*last)->offset, 4 * m - 4);
}

TEST(Strides, ABatchIsCutWhereAnyTensorIs) {
  const Index n = symbol("n"), m = symbol("m");
  // Six heads at equal steps, two of keys that three share each, and a mask that all share.
  const auto common =
      common_batch({n, 6}, {{{{n, 6 * m}}, {{6, m}}}, {{{n, 2 * m}}, {{2, m}, {3, 0}}}, {{{n, m}}, {}}});
  ASSERT_TRUE(common);
  EXPECT_EQ(common->extents, (Shape{n, 2, 3}));
  EXPECT_EQ(common->steps[0], (std::vector<Index>{6 * m, 3 * m, m}));
  EXPECT_EQ(common->steps[1], (std::vector<Index>{2 * m, m, 0}));
  EXPECT_EQ(common->steps[2], (std::vector<Index>{m, 0, 0}));
  EXPECT_FALSE(common_batch({6}, {{{{2, 3}, {3, 1}}}, {{{3, 2}, {2, 0}}}}));
  EXPECT_FALSE(common_batch({n}, {{{{n, 1}}}, {{{m, 1}}}}));
}

TEST(Strides, OfNothingThereAreNone) {
  EXPECT_FALSE(steps_of("input x : f32[0,12]\ny = Reshape(x) {shape=[0,3,4]}", {0, 12}));
  EXPECT_FALSE(steps_of("input x : f32[12,0]\ny = Reshape(x) {shape=[3,0]}", {12, 0}));
}

TEST(Strides, AnAxisOfOnePlaceMayBeAnywhere) {
  const auto steps =
      steps_of("input x : f32[4,1,6]\na = Transpose(x) {perm=[2,1,0]}\ny = Reshape(a) {shape=[3,2,1,4]}", {4, 1, 6});
  ASSERT_TRUE(steps);
  EXPECT_EQ(single_steps(*steps)->axes, (std::vector<Index>{2, 1, 1, 6}));
}

}  // namespace
}  // namespace gopt::planner
