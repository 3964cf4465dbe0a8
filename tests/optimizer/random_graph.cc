#include "random_graph.h"

#include <algorithm>
#include <set>

#include "random_tensor.h"

namespace gopt {
namespace {

using Ints = std::vector<Index>;

// An operator with attributes, and how many inputs it takes.
struct Choice {
  OpKind op;
  int inputs;
  Attributes attributes;
  int outputs = 1;
};

std::vector<Choice> choices() {
  const Attributes same{{"pads", Ints{1, 1, 1, 1}}}, strided{{"strides", Ints{2, 2}}};
  const Attributes window{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{1, 1}}};
  return {
      {OpKind::Add, 2, {}},
      {OpKind::Sub, 2, {}},
      {OpKind::Mul, 2, {}},
      {OpKind::Max, 2, {}},
      {OpKind::Min, 2, {}},
      {OpKind::Relu, 1, {}},
      {OpKind::Neg, 1, {}},
      {OpKind::Abs, 1, {}},
      {OpKind::Tanh, 1, {}},
      {OpKind::Sigmoid, 1, {}},
      {OpKind::Sin, 1, {}},
      {OpKind::Cos, 1, {}},
      {OpKind::MatMul, 2, {}},
      {OpKind::Conv, 2, same},
      {OpKind::Conv, 2, {}},
      {OpKind::Conv, 3, strided},
      {OpKind::BatchNormalization, 5, {}},
      {OpKind::MaxPool, 1, window},
      {OpKind::AveragePool, 1, window},
      {OpKind::GlobalAveragePool, 1, {}},
      {OpKind::Softmax, 1, {{"axis", Index(-1)}}},
      {OpKind::ReduceSum, 1, {{"axes", Ints{-1}}}},
      {OpKind::ReduceMean, 1, {{"axes", Ints{-1}}}},
      {OpKind::Transpose, 1, {{"perm", Ints{1, 0}}}},
      {OpKind::Transpose, 1, {{"perm", Ints{0, 2, 1}}}},
      {OpKind::Concat, 2, {{"axis", Index(0)}}},
      {OpKind::Concat, 2, {{"axis", Index(1)}}},
      {OpKind::Split, 1, {{"axis", Index(1)}}, 2},
      {OpKind::Slice, 1, {{"starts", Ints{1}}, {"ends", Ints{3}}, {"axes", Ints{0}}}},
      {OpKind::Unsqueeze, 1, {{"axes", Ints{0}}}},
      {OpKind::Squeeze, 1, {{"axes", Ints{0}}}},
  };
}

class Maker {
 public:
  // A graph has a few kinds of operators, so that what rules ask for comes together.
  explicit Maker(std::mt19937_64& random) : random_(random), choices_(choices()) {
    std::shuffle(choices_.begin(), choices_.end(), random);
    choices_.resize(4);
    for (OpKind op : {OpKind::Add, OpKind::Mul}) choices_.push_back({op, 2, {}});
    for (OpKind op : {OpKind::Relu, OpKind::Neg}) choices_.push_back({op, 1, {}});
    for (const char* name : {"p", "q"}) add_input(name, {4, 4});
    for (const char* name : {"r", "s"}) add_input(name, {1, 2, 5, 4});
    add_input("t", {2, 4, 4});
    for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{{4, 4},
                                                                              {4, 4},
                                                                              {4},
                                                                              {4},
                                                                              {},
                                                                              {3, 2, 3, 3},
                                                                              {2, 2, 3, 3},
                                                                              {2, 2, 1, 1},
                                                                              {2},
                                                                              {2},
                                                                              {2, 1, 1},
                                                                              {2, 1, 1},
                                                                              {4, 2}})
      values_.push_back(builder_.constant(random_tensor(random_, ElementType::Float32, dims, -1, 1)));
    // Variances of a batch normalization are positive.
    values_.push_back(builder_.constant(Tensor::from_values<double>(ElementType::Float32, {2}, {0.5, 1.5})));
  }

  Graph make(int applications) {
    for (int tries = 0; made_ < applications && tries < 400 * applications; tries++) try_one();
    // All that nothing uses is an output.
    int count = 0;
    for (const Value& value : values_)
      if (!used_.count(value) && !value.node->is(OpKind::Input) && !value.node->is(OpKind::Constant))
        builder_.output("out" + std::to_string(count++), value);
    return builder_.build();
  }

 private:
  void add_input(const std::string& name, const std::vector<int64_t>& dims) {
    values_.push_back(builder_.input(name, {ElementType::Float32, Shape(dims.begin(), dims.end())}));
  }
  // The latest values are taken more often, so that chains grow.
  const Value& pick() {
    const size_t back = random_() % 2 ? random_() % std::min<size_t>(values_.size(), 4) : random_() % values_.size();
    return values_[values_.size() - 1 - back];
  }

  void try_one() {
    const Choice& choice = choices_[random_() % choices_.size()];
    std::vector<Value> inputs;
    for (int i = 0; i < choice.inputs; i++) inputs.push_back(pick());
    if (choice.op == OpKind::BatchNormalization) {
      inputs.assign(5, values_[13]);
      inputs[0] = pick();
      inputs[4] = values_[18];
    }
    auto node = builder_.add(choice.op, inputs, choice.attributes, choice.outputs);
    if (!node.ok()) return;
    for (const TensorType& type : (*node)->outputs)
      if (!type.has_static_shape() || element_count(type.static_shape()) > 400 ||
          element_count(type.static_shape()) == 0)
        return;
    used_.insert(inputs.begin(), inputs.end());
    for (int output = 0; output < choice.outputs; output++) values_.push_back({*node, output});
    made_++;
  }

  std::mt19937_64& random_;
  std::vector<Choice> choices_;
  GraphBuilder builder_;
  std::vector<Value> values_;
  std::set<Value> used_;
  int made_ = 0;
};

}  // namespace

Graph random_graph(std::mt19937_64& random, int applications) { return Maker(random).make(applications); }

std::map<std::string, Tensor> random_inputs(std::mt19937_64& random, const Graph& graph) {
  std::map<std::string, Tensor> inputs;
  for (const Value& input : graph.inputs()) inputs[input.node->name] = random_tensor(random, input.type(), -1, 1);
  return inputs;
}

}  // namespace gopt
