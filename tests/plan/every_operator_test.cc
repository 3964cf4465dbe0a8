// What planning derives of an operator from its definition, for each row of the operator table: compared with what the
// interpreter makes of random applications.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "../../planner/access.h"
#include "../../planner/node_work.h"
#include "../ir/random_nodes.h"
#include "gopt/interpreter.h"
#include "gopt/text.h"

namespace gopt::planner {
namespace {

constexpr uint64_t kSeeds = 120;

// An application over inputs of its own; one-element inputs are constants, which definitions may look at.
struct Applied {
  RandomNode drawn;
  NodePtr node;
  std::string text;
};
std::vector<Applied> applications(OpKind op) {
  std::vector<Applied> all;
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    RandomNode drawn = RandomNodes(seed).node(op);
    GraphBuilder builder;
    std::vector<Value> inputs;
    for (size_t k = 0; k < drawn.inputs.size(); k++) {
      const Tensor& t = drawn.inputs[k];
      inputs.push_back(t.count() == 1 ? builder.constant(t) : builder.input("x" + std::to_string(k), t.tensor_type()));
    }
    const auto node = builder.add(op, inputs, drawn.attributes, drawn.output_count);
    if (!node || !interpret_node(**node, drawn.inputs)) continue;
    std::string text = "seed " + std::to_string(seed) + ": " + to_string(drawn);
    all.push_back({std::move(drawn), *node, std::move(text)});
  }
  return all;
}

std::vector<std::vector<double>> values(const Applied& a, const std::vector<Tensor>& inputs) {
  std::vector<std::vector<double>> all;
  const auto outputs = interpret_node(*a.node, inputs);
  EXPECT_TRUE(outputs.ok()) << a.text;
  for (const Tensor& t : outputs.ok() ? *outputs : std::vector<Tensor>{}) all.push_back(t.to_doubles());
  return all;
}

// Of a flat position, the place along an axis.
int64_t place_along(const std::vector<int64_t>& dims, size_t axis, size_t position) {
  int64_t inner = 1;
  for (size_t d = axis + 1; d < dims.size(); d++) inner *= dims[d];
  return static_cast<int64_t>(position) / inner % dims[axis];
}

// The tensor with other numbers at one place along an axis.
Tensor disturbed(const Tensor& t, size_t axis, int64_t place) {
  std::vector<double> numbers = t.to_doubles();
  for (size_t k = 0; k < numbers.size(); k++)
    if (place_along(t.dims(), axis, k) == place) numbers[k] += 100 + static_cast<double>(k);
  return Tensor::from_values(t.type(), t.dims(), numbers);
}

// Places of an output along an axis where it changes when the input does at one place along that axis.
std::set<int64_t> changed_places(const Applied& a, size_t input, size_t output, size_t axis, int64_t place) {
  std::vector<Tensor> inputs = a.drawn.inputs;
  const auto before = values(a, inputs);
  inputs[input] = disturbed(inputs[input], axis, place);
  const auto after = values(a, inputs);
  const std::vector<int64_t> dims = a.node->outputs[output].static_shape();
  std::set<int64_t> places;
  for (size_t k = 0; k < before[output].size(); k++)
    if (before[output][k] != after[output][k] && !std::isnan(before[output][k]))
      places.insert(place_along(dims, axis, k));
  return places;
}

// A batch or channel of the output is made of one of each image, and of no other.
void expect_keeps_channels(const Applied& a) {
  for (size_t o = 0; o < a.node->outputs.size(); o++)
    for (size_t k = 0; k < a.drawn.inputs.size(); k++) {
      const Tensor& image = a.drawn.inputs[k];
      if (image.type() != ElementType::Float32 || image.dims().size() != a.node->outputs[o].static_shape().size())
        continue;
      for (size_t axis = 0; axis < 2; axis++) {
        std::set<int64_t> taken;
        for (int64_t place = 0; place < image.dims()[axis]; place++)
          for (int64_t changed : changed_places(a, k, o, axis, place))
            EXPECT_TRUE(taken.insert(changed).second) << a.text << " axis " << axis << " input " << k;
      }
    }
}

// Reads of an expression by running it, in loops over places and binders.
class CountedReads {
 public:
  CountedReads(const Applied& a, bool takes_guards) : inputs_(a.drawn.inputs), takes_guards_(takes_guards) {}

  std::vector<int64_t> run(const TensorExpr& output, const std::vector<ElementType>& types) {
    reads_.assign(inputs_.size(), 0);
    for (const Stage& s : stage(output, types, true)) {
      std::vector<Binder> loops;
      for (size_t axis = 0; axis < s.axes.size(); axis++) loops.push_back({s.axes[axis], s.shape[axis]});
      run_loops(loops, 0, s.value);
    }
    return reads_;
  }

 private:
  using Seen = std::set<std::pair<int, std::vector<Index>>>;

  void run_loops(const std::vector<Binder>& loops, size_t k, const Expr& body) {
    if (k == loops.size()) {
      Seen seen;
      run(body, seen);
      return;
    }
    for (int64_t i = 0; i < loops[k].extent.constant(); i++) {
      environment_[loops[k].symbol] = i;
      run_loops(loops, k + 1, body);
    }
  }
  void run(const Expr& e, Seen& seen) {
    if (e->kind == ExprKind::Read && static_cast<size_t>(e->input) < reads_.size() &&
        seen.emplace(e->input, e->subscripts).second)
      reads_[static_cast<size_t>(e->input)]++;
    if (e->kind == ExprKind::Reduce) return run_loops(e->binders, 0, e->args[0]);
    if (e->kind == ExprKind::Select && takes_guards_) {
      const auto load = [&](int input, std::span<const int64_t> subscripts) {
        const Tensor& t = inputs_[static_cast<size_t>(input)];
        int64_t flat = 0;
        for (size_t d = 0; d < subscripts.size(); d++) flat = flat * t.dims()[d] + subscripts[d];
        return t.to_ints()[static_cast<size_t>(flat)];
      };
      return run(e->args[evaluate(e->cond, environment_, load).value() ? 0 : 1], seen);
    }
    for (const Expr& a : e->args) run(a, seen);
  }

  const std::vector<Tensor>& inputs_;
  bool takes_guards_;
  Environment environment_;
  std::vector<int64_t> reads_;
};

class EveryOperator : public testing::TestWithParam<OpKind> {};

TEST_P(EveryOperator, ThatFollowsTheLayoutKeepsBatchesAndChannelsApart) {
  for (const Applied& a : applications(GetParam()))
    if (work_of(*a.node).follows_layout) expect_keeps_channels(a);
}

TEST_P(EveryOperator, ThatIsElementwiseFollowsTheLayout) {
  if (!op_info(GetParam()).has(kElementwise)) return;
  for (const Applied& a : applications(GetParam())) {
    EXPECT_EQ(work_of(*a.node).follows_layout, a.node->outputs[0].shape->size() >= 3) << a.text;
    EXPECT_FALSE(work_of(*a.node).reduces) << a.text;
  }
}

TEST_P(EveryOperator, ThatKeepsTheOrderReturnsItsInput) {
  for (const Applied& a : applications(GetParam())) {
    if (!work_of(*a.node).keeps_order) continue;
    EXPECT_EQ(a.node->outputs[0].element, a.drawn.inputs[0].type()) << a.text;
    EXPECT_EQ(values(a, a.drawn.inputs)[0], a.drawn.inputs[0].to_doubles()) << a.text;
  }
}

TEST_P(EveryOperator, ReadsAsOftenAsItsStagesDo) {
  for (const Applied& a : applications(GetParam())) {
    const NodeWork& work = work_of(*a.node);
    std::vector<TensorExpr> inputs;
    std::vector<ElementType> types;
    for (size_t k = 0; k < a.drawn.inputs.size(); k++) {
      inputs.push_back(input_tensor(static_cast<int>(k), a.drawn.inputs[k].tensor_type()));
      if (a.drawn.inputs[k].count() == 1) inputs.back().data = &a.drawn.inputs[k];
      types.push_back(a.drawn.inputs[k].type());
    }
    const auto definition = define(GetParam(), inputs, a.drawn.attributes, a.drawn.output_count);
    ASSERT_TRUE(definition.ok()) << a.text;
    ASSERT_EQ(work.reads.size(), a.node->outputs.size()) << a.text;
    for (size_t o = 0; o < work.reads.size(); o++) {
      const auto all = CountedReads(a, false).run(definition->outputs[o], types);
      const auto taken = CountedReads(a, true).run(definition->outputs[o], types);
      for (size_t k = 0; k < all.size(); k++) {
        EXPECT_TRUE(work.is_index[k] || work.reads[o][k] == Index(all[k])) << a.text << " input " << k;
        EXPECT_LE(taken[k], work.reads[o][k].constant()) << a.text << " input " << k;
      }
    }
  }
}

TEST_P(EveryOperator, TakesOnlyIntegersAsSubscripts) {
  for (const Applied& a : applications(GetParam())) {
    const std::vector<bool>& is_index = work_of(*a.node).is_index;
    ASSERT_EQ(is_index.size(), a.drawn.inputs.size());
    for (size_t k = 0; k < is_index.size(); k++)
      EXPECT_TRUE(!is_index[k] || !is_floating(a.drawn.inputs[k].type())) << a.text;
  }
}

TEST_P(EveryOperator, ComputesWhereItIsNoMovement) {
  const OpInfo& info = op_info(GetParam());
  for (const Applied& a : applications(GetParam())) {
    const NodeWork& work = work_of(*a.node);
    if (info.has(kDataMovement) || info.has(kShapeOnly)) {
      EXPECT_EQ(work.operations, 0) << a.text;
      EXPECT_EQ(work.operations_an_element, 0) << a.text;
    } else if (work.operations == 0 && work.reads[0][0] != Index(0) &&
               a.node->outputs[0].element == a.drawn.inputs[0].type()) {
      // Nothing computed: what comes out is among what goes in.
      std::set<double> known;
      for (const Tensor& t : a.drawn.inputs)
        for (double v : t.to_doubles()) known.insert(v);
      const auto made = values(a, a.drawn.inputs);
      for (double v : made[0]) EXPECT_TRUE(known.contains(v)) << a.text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EveryOperator, testing::ValuesIn(all_ops()),
                         [](const auto& info) { return op_info(info.param).name; });

// ---- what is decided ----

NodeWork work_of_line(const std::string& op) {
  const auto graph = parse_graph(
      "graph g\ninput x : f32[2,8,6,6]\ninput y : f32[2,8,6,6]\ninput i : i64[3]\ninput j : i64[2,8,6,6]\n"
      "input w : f32[4,8,3,3]\ninput s : f32[8]\ninput b : f32[1,8,1,1]\nr = " +
      op + "\noutput r = r\nend\n");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return graph.ok() ? work_of(*graph->outputs()[0].value.node) : NodeWork{};
}

TEST(FollowsLayout, WhatReadsItsOwnChannelInPlace) {
  for (const char* op :
       {"Add(x, b)", "MaxPool(x) {kernel_shape=[3,3]}", "GlobalAveragePool(x)", "Concat(x, y) {axis=1}",
        "Slice(x) {starts=[2], ends=[7], axes=[1], steps=[2]}", "Pad(x) {pads=[0,1,0,0,0,0,1,0]}",
        "BatchNormalization(x, s, s, s, s)", "InstanceNormalization(x, s, s)", "Softmax(x) {axis=3}",
        "ReduceMean(x) {axes=[2,3]}", "ReduceMin(x) {axes=[3]}", "Expand(b) {shape=[2,8,6,6]}", "Gather(x, i) {axis=2}",
        "Repeat(x) {repeats=[1,1,2,3]}"})
    EXPECT_TRUE(work_of_line(op).follows_layout) << op;
  for (const char* op :
       {"Conv(x, w)", "MatMul(x, y)", "Transpose(x) {perm=[0,1,3,2]}", "Reshape(x) {shape=[2,6,8,6]}", "Flatten(x)",
        "DepthToSpace(x) {blocksize=2}", "Softmax(x) {axis=1}", "ReduceMean(x) {axes=[1]}", "Gather(x, i) {axis=1}",
        "GatherElements(x, j) {axis=3}", "ReduceMean(x) {axes=[2], keepdims=0}", "Tile(x) {repeats=[1,2,1,1]}",
        "Repeat(x) {repeats=[1,2,1,1]}"})
    EXPECT_FALSE(work_of_line(op).follows_layout) << op;
}

TEST(KeepsOrder, WhatMovesNothing) {
  for (const char* op :
       {"Reshape(x) {shape=[2,48,6]}", "Reshape(x) {shape=[3,-1,4]}", "Flatten(x) {axis=2}", "Unsqueeze(x) {axes=[0]}",
        "Squeeze(b) {axes=[0,2]}", "Identity(x)", "Transpose(b) {perm=[1,0,3,2]}"})
    EXPECT_TRUE(work_of_line(op).keeps_order) << op;
  for (const char* op : {"Transpose(x) {perm=[0,1,3,2]}", "Relu(x)", "Cast(x) {to=11}", "Expand(b) {shape=[2,8,6,6]}",
                         "Slice(x) {starts=[0], ends=[1], axes=[0]}", "Concat(x, x) {axis=0}", "Softmax(x)"})
    EXPECT_FALSE(work_of_line(op).keeps_order) << op;
}

TEST(KeepsOrder, WithSymbolicExtents) {
  for (const char* op : {"Reshape(x) {shape=[0,-1,4,16]}", "Reshape(x) {shape=[0,0,16,4]}", "Flatten(x) {axis=2}",
                         "Unsqueeze(x) {axes=[1]}", "Reshape(x) {shape=[-1,64]}"}) {
    const auto graph =
        parse_graph("graph g\ninput x : f32[batch,length,64]\nr = " + std::string(op) + "\noutput r = r\nend\n");
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    EXPECT_TRUE(work_of(*graph->outputs()[0].value.node).keeps_order) << op;
  }
}

TEST(IndexOperands, AreThoseOfGathers) {
  EXPECT_EQ(work_of_line("Gather(x, i) {axis=2}").is_index, (std::vector<bool>{false, true}));
  EXPECT_EQ(work_of_line("GatherElements(x, j) {axis=2}").is_index, (std::vector<bool>{false, true}));
}

TEST(Reads, AreOfAllStages) {
  const double elements = 2 * 8 * 6 * 6;
  const auto reads = [&](const char* op) { return static_cast<double>(work_of_line(op).reads[0][0].constant()); };
  EXPECT_EQ(reads("Softmax(x) {axis=3}"), 3 * elements);
  EXPECT_EQ(reads("InstanceNormalization(x, s, s)"), 3 * elements);
  EXPECT_EQ(reads("ReduceMean(x) {axes=[2,3]}"), elements);
  EXPECT_EQ(reads("Mish(x)"), elements);  // it is at hand where it is used again
  EXPECT_EQ(reads("Expand(b) {shape=[2,8,6,6]}"), elements);
  EXPECT_EQ(reads("MatMul(x, y)"), 6 * elements);
  EXPECT_EQ(reads("Conv(x, w)"), 2 * 4 * 4 * 4 * 8 * 9);
  EXPECT_EQ(reads("MaxPool(x) {kernel_shape=[2,2]}"), 2 * 8 * 5 * 5 * 4);
}

TEST(OperationsAnElement, LeaveOutWhatIsTheSameAlongAnAxis) {
  EXPECT_EQ(work_of_line("Relu(x)").operations_an_element, 1);
  EXPECT_EQ(work_of_line("Concat(x, y) {axis=1}").operations_an_element, 0);
  EXPECT_GT(work_of_line("Sin(x)").operations_an_element, 6);
  EXPECT_LT(work_of_line("Div(x, y)").operations_an_element, 6);
  EXPECT_LE(work_of_line("BatchNormalization(x, s, s, s, s)").operations_an_element, 3);
}

}  // namespace
}  // namespace gopt::planner
