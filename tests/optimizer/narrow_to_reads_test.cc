// What nothing reads is not computed: which graphs become which, and that every operator, of which a random part is
// read, computes that part as the interpreter does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "../ir/random_nodes.h"
#include "count_cost.h"
#include "gopt/interpreter.h"
#include "gopt/text.h"
#include "graph_of.h"
#include "random_graph.h"

namespace gopt {
namespace {

// Whatever the pass makes is taken.
class NoCost : public CostOracle {
 public:
  Cost estimate(const Graph&) override { return {}; }
};

Graph narrowed(const Graph& graph) {
  SearchOptions options = untimed();
  for (const std::string& pass : pass_names())
    if (pass != "narrow-to-reads") options.disabled_passes.push_back(pass);
  NoCost costs;
  auto result = optimize(graph, {}, costs, options);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? result->graph : Graph();
}

struct Row {
  std::string name, graph, expected;  // expected empty: the same graph
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

class NarrowToReads : public testing::TestWithParam<Row> {};

TEST_P(NarrowToReads, GivesTheExpectedGraph) {
  const Row& row = GetParam();
  const Graph graph = graph_of(row.graph), expected = row.expected.empty() ? graph : graph_of(row.expected);
  const Graph found = narrowed(graph);
  EXPECT_EQ(found.hash(), expected.hash()) << print_graph(found) << "expected\n" << print_graph(expected);
}

INSTANTIATE_TEST_SUITE_P(Table, NarrowToReads,
                         testing::Values(Row{"OneTokenOfALayer", R"(
  input x : f32[n,16,8]
  input w : f32[8,32]
  input b : f32[32]
  input v : f32[32,8]
  input s : f32[8]
  constant i = i64[] {0}
  a = MatMul(x, w)
  c = Add(a, b)
  d = Relu(c)
  e = MatMul(d, v)
  f = Add(x, e)
  g = LayerNormalization(f, s) {axis=-1}
  h = Gather(g, i) {axis=1}
  output y = h
)",
                                             R"(
  input x : f32[n,16,8]
  input w : f32[8,32]
  input b : f32[32]
  input v : f32[32,8]
  input s : f32[8]
  t = Slice(x) {axes=[1], starts=[0], ends=[1]}
  a = MatMul(t, w)
  c = Add(a, b)
  d = Relu(c)
  e = MatMul(d, v)
  f = Add(t, e)
  g = LayerNormalization(f, s) {axis=-1}
  h = Squeeze(g) {axes=[1]}
  output y = h
)"},
                                         Row{"OneQueryOfAnAttention", R"(
  input q : f32[1,4,16,8]
  input k : f32[1,4,8,16]
  input v : f32[1,4,16,8]
  a = MatMul(q, k)
  b = Softmax(a) {axis=-1}
  c = MatMul(b, v)
  d = Transpose(c) {perm=[0,2,1,3]}
  e = Reshape(d) {shape=[1,16,32]}
  f = Slice(e) {axes=[1], starts=[3], ends=[4]}
  output y = f
)",
                                             R"(
  input q : f32[1,4,16,8]
  input k : f32[1,4,8,16]
  input v : f32[1,4,16,8]
  t = Slice(q) {axes=[2], starts=[3], ends=[4]}
  a = MatMul(t, k)
  b = Softmax(a) {axis=-1}
  c = MatMul(b, v)
  d = Transpose(c) {perm=[0,2,1,3]}
  e = Reshape(d) {shape=[1,1,32]}
  output y = e
)"},
                                         Row{"MiddleOfAConvolution", R"(
  input x : f32[1,4,32,32]
  input w : f32[8,4,3,3]
  a = Conv(x, w) {pads=[1,1,1,1]}
  b = Slice(a) {axes=[3], starts=[8], ends=[16]}
  output y = b
)",
                                             R"(
  input x : f32[1,4,32,32]
  input w : f32[8,4,3,3]
  t = Slice(x) {axes=[3], starts=[7], ends=[17]}
  a = Conv(t, w) {pads=[1,0,1,0]}
  output y = a
)"},
                                         Row{"BorderOfAConvolution", R"(
  input x : f32[1,4,32,32]
  input w : f32[8,4,3,3]
  a = Conv(x, w) {pads=[1,1,1,1]}
  b = Slice(a) {axes=[2], starts=[0], ends=[4]}
  output y = b
)",
                                             R"(
  input x : f32[1,4,32,32]
  input w : f32[8,4,3,3]
  t = Slice(x) {axes=[2], starts=[0], ends=[5]}
  a = Conv(t, w) {pads=[1,1,0,1]}
  output y = a
)"},
                                         Row{"EverySecondOfAConvolution", R"(
  input x : f32[1,4,33,32]
  input w : f32[8,4,3,3]
  a = Conv(x, w)
  b = Slice(a) {axes=[2], starts=[0], ends=[31], steps=[2]}
  output y = b
)",
                                             R"(
  input x : f32[1,4,33,32]
  input w : f32[8,4,3,3]
  a = Conv(x, w) {strides=[2,1]}
  output y = a
)"},
                                         // Of the first, 1 and 3 steps of 8 apart are read of 40; the causal padding
                                         // before it lies among them.
                                         Row{"LastStepOfCausalConvolutions", R"(
  input x : f32[1,4,40]
  input w : f32[4,4,3]
  input v : f32[4,4,3]
  p = Pad(x) {pads=[0,0,16,0,0,0]}
  a = Conv(p, w) {dilations=[8]}
  r = Relu(a)
  q = Pad(r) {pads=[0,0,32,0,0,0]}
  b = Conv(q, v) {dilations=[16]}
  c = Slice(b) {axes=[2], starts=[-1], ends=[40]}
  output y = c
)",
                                             R"(
  input x : f32[1,4,40]
  input w : f32[4,4,3]
  input v : f32[4,4,3]
  t = Slice(x) {axes=[2], starts=[7], ends=[40], steps=[8]}
  p = Pad(t) {pads=[0,0,2,0,0,0]}
  a = Conv(p, w) {strides=[2]}
  r = Relu(a)
  b = Conv(r, v)
  output y = b
)"},
                                         Row{"OneOperandOfAConcat", R"(
  input x : f32[2,4]
  input z : f32[2,4]
  a = Concat(x, z) {axis=0}
  b = Relu(a)
  c = Slice(b) {axes=[0], starts=[2], ends=[3]}
  output y = c
)",
                                             R"(
  input x : f32[2,4]
  input z : f32[2,4]
  t = Slice(z) {axes=[0], starts=[0], ends=[1]}
  b = Relu(t)
  output y = b
)"},
                                         Row{"PartsOfTwoReaders", R"(
  input x : f32[16,4]
  a = Exp(x)
  b = Slice(a) {axes=[0], starts=[2], ends=[4]}
  c = Slice(a) {axes=[0], starts=[6], ends=[8]}
  output y = b
  output z = c
)",
                                             R"(
  input x : f32[16,4]
  t = Slice(x) {axes=[0], starts=[2], ends=[8]}
  a = Exp(t)
  b = Slice(a) {axes=[0], starts=[0], ends=[2]}
  c = Slice(a) {axes=[0], starts=[4], ends=[6]}
  output y = b
  output z = c
)"},
                                         Row{"OneOutputOfASplit", R"(
  input x : f32[12,4]
  a = Exp(x)
  b, c, d = Split(a) {axis=0, split=[4,4,4]}
  e = Relu(c)
  output y = e
)",
                                             R"(
  input x : f32[12,4]
  t = Slice(x) {axes=[0], starts=[4], ends=[8]}
  a = Exp(t)
  e = Relu(a)
  output y = e
)"},
                                         // Its sequence may be of any length, of which the first is read.
                                         Row{"FirstOfAnOpenAxis", R"(
  input x : f32[n,s,8]
  constant i = i64[] {0}
  a = Exp(x)
  b = Gather(a, i) {axis=1}
  c = Slice(b) {axes=[1], starts=[0], ends=[4]}
  output y = c
)",
                                             R"(
  input x : f32[n,s,8]
  t = Slice(x) {axes=[1,2], starts=[0,0], ends=[1,4]}
  a = Exp(t)
  b = Squeeze(a) {axes=[1]}
  output y = b
)"},
                                         // Squeeze would ask for an extent of 1.
                                         Row{"TheAxisItselfStaysWhole", R"(
  input x : f32[n,16]
  constant i = i64[] {0}
  a = Exp(x)
  b = Gather(a, i) {axis=0}
  c = Add(b, b)
  output y = c
  output z = a
)",
                                             ""},
                                         // A Cast reads what it makes; sums are of doubles all the same.
                                         Row{"WhatIsComputedInAnotherType", R"(
  input x : f32[16,4]
  a = Cast(x) {to=11}
  b = ReduceSum(a) {axes=[1]}
  c = Cast(b) {to=1}
  d = Slice(c) {axes=[0], starts=[0], ends=[2]}
  output y = d
)",
                                             R"(
  input x : f32[16,4]
  t = Slice(x) {axes=[0], starts=[0], ends=[2]}
  a = Cast(t) {to=11}
  b = ReduceSum(a) {axes=[1]}
  c = Cast(b) {to=1}
  output y = c
)"},
                                         Row{"ReadAsAWholeElsewhere", R"(
  input x : f32[16,4]
  a = Exp(x)
  b = Slice(a) {axes=[0], starts=[0], ends=[1]}
  output y = b
  output z = a
)",
                                             ""},
                                         Row{"AlongASoftmax", R"(
  input x : f32[16,4]
  a = Softmax(x) {axis=0}
  b = Slice(a) {axes=[0], starts=[0], ends=[1]}
  output y = b
)",
                                             ""},
                                         Row{"NearlyAll", R"(
  input x : f32[16,4]
  a = Exp(x)
  b = Slice(a) {axes=[0], starts=[0], ends=[15]}
  output y = b
)",
                                             ""},
                                         Row{"WhereItIsKnownWhenItRuns", R"(
  input x : f32[16,4]
  input i : i64[]
  a = Exp(x)
  b = Gather(a, i) {axis=0}
  output y = b
)",
                                             ""},
                                         Row{"OfInputsAndWeights", R"(
  input x : f32[16,4]
  b = Slice(x) {axes=[0], starts=[0], ends=[1]}
  output y = b
)",
                                             ""}),
                         [](const auto& info) { return info.param.name; });

// Two open extents that meet may be equal, or one of them 1: the result has no known shape.
TEST(NarrowToReadsOf, ValuesOfUnknownShapesAreLeft) {
  GraphBuilder builder;
  builder.set_broadcast_unknown(true);
  const Value x = builder.input("x", {ElementType::Float32, Shape{symbol("a"), Index(8)}});
  const auto wide = builder.apply(OpKind::Expand, {x}, {{"shape", std::vector<Index>{symbol("b"), Index(8)}}});
  ASSERT_TRUE(wide.ok()) << wide.error().message;
  ASSERT_FALSE(wide->type().shape);
  builder.output("y", *wide);
  const Graph graph = builder.build();
  EXPECT_EQ(narrowed(graph).hash(), graph.hash());
}

// The largest difference relative to the largest magnitude; infinite where one is NaN and the other is not.
double difference(const Tensor& a, const Tensor& b) {
  const auto x = a.to_doubles(), y = b.to_doubles();
  if (a.dims() != b.dims() || a.type() != b.type()) return HUGE_VAL;
  double worst = 0, scale = 1e-3;
  for (double value : x)
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  for (size_t k = 0; k < x.size(); k++)
    if (!(x[k] == y[k] || (std::isnan(x[k]) && std::isnan(y[k]))))
      worst = std::isfinite(x[k]) && std::isfinite(y[k]) ? std::max(worst, std::abs(x[k] - y[k]) / scale) : HUGE_VAL;
  return worst;
}

// The value computed in another type and back, where that is one of floats.
Value in_another_type(GraphBuilder& builder, const Value& value) {
  const ElementType type = value.type().element;
  if (!is_floating(type)) return value;
  const ElementType other = type == ElementType::Float64 ? ElementType::Float32 : ElementType::Float64;
  const auto to = [](ElementType t) { return Attributes{{"to", Index(static_cast<int64_t>(t))}}; };
  const auto there = builder.apply(OpKind::Cast, {value}, to(other));
  const auto twice = there ? builder.apply(OpKind::Mul, {*there, *there}) : there;
  const auto back = twice ? builder.apply(OpKind::Cast, {*twice}, to(type)) : twice;
  EXPECT_TRUE(back.ok());
  return back.ok() ? *back : value;
}

// A Slice of the value with parts of axes that are drawn, some of them in steps or in reverse.
Result<Value> random_slice(GraphBuilder& builder, const Value& value, std::mt19937_64& random) {
  std::vector<Index> axes, starts, ends, steps;
  const std::vector<int64_t> dims = value.type().static_shape();
  for (size_t axis = 0; axis < dims.size(); axis++) {
    if (dims[axis] < 2 || random() % 3 == 0) continue;
    const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
    int64_t start = below(dims[axis]), end = start + 1 + below(dims[axis] - start), step = 1 + below(3) / 2;
    if (random() % 8 == 0) {
      std::swap(start, end);
      step = -1;
      start--;
      end = end == 0 ? -dims[axis] - 1 : end - 1;
    }
    axes.emplace_back(static_cast<int64_t>(axis));
    starts.emplace_back(start);
    ends.emplace_back(end);
    steps.emplace_back(step);
  }
  return builder.apply(OpKind::Slice, {value}, {{"axes", axes}, {"starts", starts}, {"ends", ends}, {"steps", steps}});
}

// Operators that nothing is gained of: they read all, or move what one Slice moves as well.
bool computes_less_of(OpKind op) {
  static const std::set<OpKind> narrowed = {OpKind::Exp,       OpKind::Gelu,        OpKind::Add,
                                            OpKind::Where,     OpKind::MatMul,      OpKind::Gemm,
                                            OpKind::Conv,      OpKind::AveragePool, OpKind::MaxPool,
                                            OpKind::Softmax,   OpKind::Concat,      OpKind::LayerNormalization,
                                            OpKind::Pad,       OpKind::ReduceMean,  OpKind::Transpose,
                                            OpKind::Unsqueeze, OpKind::ReduceL2,    OpKind::BatchNormalization,
                                            OpKind::Reshape,   OpKind::Expand};
  return narrowed.contains(op);
}

class EveryOperatorInPart : public testing::TestWithParam<OpKind> {};

TEST_P(EveryOperatorInPart, ComputesThePartThatIsRead) {
  int compared = 0, changed = 0;
  for (uint64_t seed = 0; seed < 200; seed++) {
    const RandomNode drawn = RandomNodes(seed).node(GetParam());
    // A mean of nothing but padding is no number, and as a truth value or an integer it may be anything.
    if (GetParam() == OpKind::AveragePool && !is_floating(drawn.inputs[0].type())) continue;
    std::mt19937_64 random(seed);
    GraphBuilder builder;
    std::map<std::string, Tensor> feed;
    std::vector<Value> inputs;
    for (size_t k = 0; k < drawn.inputs.size(); k++) {
      const Tensor& t = drawn.inputs[k];
      if (t.type() == ElementType::Undefined) {
        inputs.emplace_back();
        continue;
      }
      const std::string name = "x" + std::to_string(k);
      inputs.push_back(t.count() == 1 ? builder.constant(t) : builder.input(name, t.tensor_type()));
      if (t.count() != 1) feed[name] = t;
    }
    const auto node = builder.add(GetParam(), inputs, drawn.attributes, drawn.output_count);
    if (!node || !interpret_node(**node, drawn.inputs)) continue;
    bool is_sliced = true;
    for (size_t o = 0; o < (*node)->outputs.size(); o++) {
      Value value{*node, static_cast<int>(o)};
      if (random() % 2 == 0) value = in_another_type(builder, value);
      const auto part = random_slice(builder, value, random);
      is_sliced &= part.ok();
      if (part.ok()) builder.output("y" + std::to_string(o), *part);
    }
    if (!is_sliced) continue;
    const Graph graph = builder.build(), part = narrowed(graph);
    const auto before = interpret(graph, feed), after = interpret(part, feed);
    if (!before.ok()) continue;
    ASSERT_TRUE(after.ok()) << to_string(drawn) << "\n" << after.error().message << "\n" << print_graph(part);
    for (size_t o = 0; o < before->size(); o++)
      EXPECT_LE(difference((*before)[o], (*after)[o]), 1e-6) << to_string(drawn) << "\n" << print_graph(part);
    compared++;
    changed += part.hash() == graph.hash() ? 0 : 1;
  }
  EXPECT_GT(compared, 0);
  EXPECT_GE(changed * 10, computes_less_of(GetParam()) ? compared : 0);
  RecordProperty("changed", changed);
}

INSTANTIATE_TEST_SUITE_P(Table, EveryOperatorInPart, testing::ValuesIn(all_ops()),
                         [](const auto& info) { return op_info(info.param).name; });

// Of random graphs, parts of all that they give.
TEST(NarrowToReadsOf, RandomGraphsComputesTheSame) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  int changed = 0;
  for (int trial = 0; trial < 300; trial++) {
    const Graph whole = random_graph(random, 4 + static_cast<int>(random() % 12));
    GraphBuilder builder;
    builder.adopt(whole);
    bool is_sliced = true;
    for (const GraphOutput& output : whole.outputs()) {
      const auto part = random_slice(builder, output.value, random);
      is_sliced &= part.ok();
      if (part.ok()) builder.output(output.name, *part);
    }
    if (!is_sliced) continue;
    const Graph built = builder.build();
    const Graph graph(whole.inputs(), built.outputs(), whole.metadata()), part = narrowed(graph);
    const auto inputs = random_inputs(random, graph);
    const auto before = interpret(graph, inputs), after = interpret(part, inputs);
    ASSERT_TRUE(before.ok()) << before.error().message;
    ASSERT_TRUE(after.ok()) << after.error().message << "\n" << print_graph(part);
    for (size_t o = 0; o < before->size(); o++)
      EXPECT_LE(difference((*before)[o], (*after)[o]), 1e-5) << print_graph(graph) << "became\n" << print_graph(part);
    changed += part.hash() == graph.hash() ? 0 : 1;
  }
  EXPECT_GT(changed, 100);
}

}  // namespace
}  // namespace gopt
