// What is checked of graphs that hold nodes without definition, or symbols.
#include "../../driver/checked_part.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "../../driver/check.h"
#include "gopt/text.h"

namespace gopt {
namespace {

using namespace driver;

Graph graph_of(const std::string& text) {
  auto graph = parse_graph("graph g\n" + text + "\nend");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return *graph;
}

TensorType floats(Shape shape) { return {ElementType::Float32, std::move(shape)}; }

// Before the node without definition, and after it: one of `before` and `after` of two operators each.
Graph with_secret(const std::shared_ptr<const OpaqueOp>& op, OpKind before, OpKind after, const TensorType& given) {
  GraphBuilder builder;
  const Value x = builder.input("x", floats({Index(2), Index(3)}));
  const Value a = *builder.apply(before, {x});
  const NodePtr secret = builder.opaque(op, {a}, {given});
  if (given.shape)
    builder.output("y", *builder.apply(after, {{secret, 0}}));
  else
    builder.output("y", {secret, 0});
  return builder.build();
}

std::shared_ptr<const OpaqueOp> secret() {
  auto op = std::make_shared<OpaqueOp>();
  op->op_type = "Secret";
  return op;
}

CheckReport check(const Graph& original, const Graph& optimized) {
  const CostSource costs;
  PlannedGraph first(original, {TargetKind::Cpu, 1}, costs), second(optimized, {TargetKind::Cpu, 1}, costs);
  return check_equal(first, second, {.engine = CheckEngine::Interpreter}, 100, 1);
}

TEST(CheckedPart, WhatLiesOnBothSidesOfAnUnknownNodeIsCompared) {
  const auto op = secret();
  const TensorType given = floats({Index(2), Index(3)});
  const Graph original = with_secret(op, OpKind::Relu, OpKind::Tanh, given);
  const CheckReport same = check(original, with_secret(op, OpKind::Relu, OpKind::Tanh, given));
  EXPECT_TRUE(same.checked) << same.why_not;
  EXPECT_TRUE(same.passed);
  EXPECT_EQ(same.nodes, 3);
  EXPECT_EQ(same.nodes_checked, 2);
  EXPECT_EQ(same.left_out, std::vector<std::string>{"Secret"});
  const CheckReport before = check(original, with_secret(op, OpKind::Abs, OpKind::Tanh, given));
  EXPECT_TRUE(before.checked && !before.passed) << before.why_not;
  const CheckReport after = check(original, with_secret(op, OpKind::Relu, OpKind::Sin, given));
  EXPECT_TRUE(after.checked && !after.passed) << after.why_not;
}

TEST(CheckedPart, OutputsOfUnknownRankLeaveOutWhatHangsOnThem) {
  const auto op = secret();
  const Graph original = with_secret(op, OpKind::Relu, OpKind::Tanh, {ElementType::Float32, std::nullopt});
  const CheckReport report = check(original, original);
  EXPECT_TRUE(report.checked && report.passed) << report.why_not;
  EXPECT_EQ(report.nodes, 2);
  EXPECT_EQ(report.nodes_checked, 1);
}

TEST(CheckedPart, WhereNothingCanBeRunNothingIsCalledChecked) {
  GraphBuilder builder;
  const Value x = builder.input("x", floats({Index(2)}));
  builder.output("y", {builder.opaque(secret(), {x}, {floats({Index(2)})}), 0});
  const Graph graph = builder.build();
  const CheckReport report = check(graph, graph);
  EXPECT_FALSE(report.checked);
  EXPECT_NE(report.why_not.find("nothing of it can be run here beside Secret"), std::string::npos) << report.why_not;
}

TEST(CheckedPart, SymbolsBecomeNumbers) {
  const Graph original = graph_of("input x : f32[n,4]\nr = Relu(x)\noutput y = r");
  const CheckReport same = check(original, original);
  EXPECT_TRUE(same.checked && same.passed) << same.why_not;
  EXPECT_EQ(same.extents, "n=2");
  EXPECT_EQ(same.nodes_checked, 1);
  const CheckReport other = check(original, graph_of("input x : f32[n,4]\nr = Abs(x)\noutput y = r"));
  EXPECT_TRUE(other.checked && !other.passed) << other.why_not;
}

// A window of 9 does not fit an image of 2 or 3: larger ones are tried.
TEST(CheckedPart, ExtentsAreLargeEnough) {
  const Graph graph =
      graph_of("input x : f32[1,1,h,w]\np = MaxPool(x) {kernel_shape=[9,9]}\nq = Relu(p)\noutput y = q");
  const auto part = part_to_check(graph, graph);
  ASSERT_TRUE(part.ok()) << part.error().message;
  EXPECT_EQ(part->extents, "h=16, w=16");
  EXPECT_EQ(part->nodes_checked, 2);
  for (const NodePtr& node : part->original.nodes())
    for (const TensorType& type : node->outputs) EXPECT_TRUE(type.has_static_shape());
}

const char* const kOfIntegers = "input x : i32[64]\n";

// On zeros and ones, which integers are drawn from first, both are the same.
TEST(Check, ExtremeIntegersAreTried) {
  const Graph original = graph_of(std::string(kOfIntegers) + "constant c = i32[] {1000}\nr = Min(x, c)\noutput y = r");
  const CheckReport same = check(original, original);
  EXPECT_TRUE(same.checked && same.passed) << same.why_not;
  EXPECT_EQ(same.draws.back(), "extreme integer");
  for (const char* other : {"constant c = i32[] {999}\nr = Min(x, c)\noutput y = r",
                            "constant c = i32[] {1001}\nr = Min(x, c)\noutput y = r", "r = Abs(x)\noutput y = r"}) {
    const CheckReport report = check(original, graph_of(kOfIntegers + std::string(other)));
    EXPECT_TRUE(report.checked && !report.passed) << other << report.why_not;
    EXPECT_EQ(report.draws.back(), "extreme integer");
  }
}

// A sine of 2^31 is another one where its factor is rounded elsewhere; a place of 2^31 does not exist.
TEST(Check, ExtremeIntegersAreNotAskedOfFloatsAndPlaces) {
  const Graph original = graph_of(std::string(kOfIntegers) +
                                  "constant c = f32[] {0.3}\nconstant d = f32[] {0.7}\na = Cast(x) {to=1}\n"
                                  "b = Mul(a, c)\ne = Mul(b, d)\nr = Sin(e)\noutput y = r");
  const Graph optimized = graph_of(std::string(kOfIntegers) +
                                   "constant c = f32[] {0.21}\na = Cast(x) {to=1}\nb = Mul(a, c)\nr = Sin(b)\n"
                                   "output y = r");
  const CheckReport report = check(original, optimized);
  EXPECT_TRUE(report.checked && report.passed) << report.why_not;
  EXPECT_NE(report.draws.back(), "extreme integer");
  const Graph places = graph_of(std::string(kOfIntegers) +
                                "input t : i32[5]\nconstant c = i32[] {2}\na = Add(x, c)\n"
                                "r = Gather(t, a) {axis=0}\noutput y = r");
  const CheckReport moved = check(places, places);
  EXPECT_TRUE(moved.checked && moved.passed) << moved.why_not;
}

// Of a tensor of few elements several are drawn: each number comes.
TEST(Check, ExtremeIntegersOfSmallTensorsAreAllTried) {
  const std::string input = "input x : i64[1]\nconstant c = i64[] {1000}\nconstant d = i64[] {1001}\n";
  const Graph original = graph_of(input + "r = Min(x, c)\noutput y = r");
  const Graph other = graph_of(input + "r = Min(x, d)\noutput y = r");
  const CostSource costs;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    PlannedGraph first(original, {TargetKind::Cpu, 1}, costs), second(other, {TargetKind::Cpu, 1}, costs);
    const CheckReport report = check_equal(first, second, {.engine = CheckEngine::Interpreter}, 100, seed);
    EXPECT_TRUE(report.checked && !report.passed) << seed;
    EXPECT_EQ(std::ranges::count(report.draws, "extreme integer"), 1);
  }
}

// What has a meaning at other sizes alone than the original is no part of it, and no such size is looked for.
TEST(CheckedPart, AGraphThatLostSizesFails) {
  const auto original = graph_of(
      "input x : f32[n,8]\na = Slice(x) {axes=[0], starts=[0], ends=[1]}\nb = Relu(a)\n"
      "c = Reshape(b) {shape=[8]}\noutput y = c");
  const auto other = graph_of("input x : f32[n,8]\na = Squeeze(x) {axes=[0]}\nb = Relu(a)\noutput y = b");
  EXPECT_TRUE(check(original, original).passed);
  const CheckReport report = check(original, other);
  EXPECT_TRUE(report.checked);
  EXPECT_FALSE(report.passed);
  ASSERT_EQ(report.differences.size(), 1u);
  EXPECT_TRUE(report.differences[0].note.starts_with("at n=2: ")) << report.differences[0].note;
}

// A place that is read says how large an axis is at least; smaller ones are none that the original runs at.
TEST(CheckedPart, ExtentsThatTheOriginalDoesNotRunAtAreNoneToCheck) {
  const auto original = graph_of(
      "input x : f32[n,8]\nconstant i = i64[] {5}\na = Relu(x)\nb = Gather(a, i) {axis=0}\n"
      "output y = b");
  const auto other = graph_of(
      "input x : f32[n,8]\na = Slice(x) {axes=[0], starts=[5], ends=[6]}\nb = Relu(a)\n"
      "c = Squeeze(b) {axes=[0]}\noutput y = c");
  for (const Graph& graph : {original, other}) {
    const CheckReport report = check(original, graph);
    EXPECT_TRUE(report.checked) << report.why_not;
    EXPECT_TRUE(report.passed);
  }
}

// A shape says what a symbol has to be; where none is found, what does not fit is left out.
TEST(CheckedPart, SymbolsTakeTheNumbersOfShapes) {
  const auto pinned = graph_of("input x : f32[n,8]\na = Reshape(x) {shape=[7,8]}\nb = Relu(a)\noutput y = b");
  const auto part = part_to_check(pinned, pinned);
  ASSERT_TRUE(part.ok()) << part.error().message;
  EXPECT_EQ(part->extents, "n=7");
}

}  // namespace
}  // namespace gopt
