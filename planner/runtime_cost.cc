// The cost of a graph as an ONNX runtime runs it: kernel by kernel, each a pass over memory with its dispatch, where a
// kernel is what runtimes make one of (runtime_groups). Efficiencies are those that ONNX Runtime was measured to have.
#include <algorithm>
#include <map>
#include <set>

#include "cover.h"
#include "gopt/kernel_costs.h"
#include "milliseconds.h"
#include "node_work.h"
#include "products.h"
#include "runtime_groups.h"

namespace gopt {

using namespace planner;

namespace {

// Shares of the roofline's arithmetic.
constexpr double kProductEfficiency = 0.5;
constexpr double kDepthwise = 0.25;  // a channel by itself
constexpr double kOddGroups = 0.06;  // groups of channels that fill no register: unfolded, a small product each
constexpr double kManyAxes = 0.15;   // more than two axes of space: unfolded
constexpr double kLoopEfficiency = 0.1;
constexpr int64_t kLanes = 8;  // channels of a block, in the narrower registers

constexpr double kApart = 4;       // what reading takes more where neighbours do not stay neighbours
constexpr double kDispatches = 2;  // what starting a kernel takes, in launches of the roofline
constexpr double kNode = 0.02;     // of a dispatch: of graphs that take one time, that of fewer nodes is better
// Weights are read in where they are used; each also takes room in caches and in the file, whoever reads it.
constexpr double kResidence = 0.1;  // of the time to read them once

double extent_of(const Shape& shape, size_t axis) {
  constexpr double kUnknownBatch = 1, kUnknown = 64;
  const auto number = shape[axis].as_constant();
  return number ? static_cast<double>(std::max<int64_t>(*number, 0)) : axis == 0 ? kUnknownBatch : kUnknown;
}

double bytes_of(const TensorType& type) {
  if (!type.shape || type.element == ElementType::Undefined || type.element == ElementType::String) return 0;
  auto bytes = static_cast<double>(size_bytes(type.element));
  for (size_t axis = 0; axis < type.shape->size(); axis++) bytes *= extent_of(*type.shape, axis);
  return bytes;
}

bool is_image(const Value& value) { return value.type().shape && value.type().shape->size() == 4; }

double convolution_efficiency(const Node& node) {
  const TensorType &weights = node.inputs[1].type(), &input = node.inputs[0].type();
  if (!weights.has_static_shape() || !input.shape || input.shape->size() < 2) return kProductEfficiency;
  const std::vector<int64_t> dims = weights.static_shape();
  if (dims.size() > 4) return kManyAxes;
  const Index channels = (*input.shape)[1];
  if (!node.is(OpKind::Conv) || channels == Index(dims[1])) return kProductEfficiency;
  const auto number = channels.as_constant();
  const int64_t groups = number ? std::max<int64_t>(*number / std::max<int64_t>(dims[1], 1), 1) : 1;
  if (dims[1] == 1 && dims[0] == groups) return kDepthwise;
  return dims[1] % kLanes == 0 && (dims[0] / groups) % kLanes == 0 ? kProductEfficiency : kOddGroups;
}

// A transpose that moves the last axis goes from element to element; another one copies rows.
bool takes_apart_rows(const Node& node) {
  if (!node.is(OpKind::Transpose)) return false;
  const auto perm = node.attributes.find("perm");
  if (perm == node.attributes.end()) return true;
  const auto& axes = std::get<std::vector<Index>>(perm->second);
  return !axes.empty() && axes.back() != Index(static_cast<int64_t>(axes.size()) - 1);
}

// The definition has a square root for each element; runtimes take one a row.
double normalization_operations(const TensorType& result) {
  constexpr double kOfElement = 8;
  return result.has_static_shape() ? kOfElement * static_cast<double>(element_count(result.static_shape())) : 0;
}

double operations_of(const Node& node) {
  if (is_product(node)) return product_operations(node);
  if (node.is(OpKind::LayerNormalization) && node.outputs[0].has_static_shape())
    return normalization_operations(node.outputs[0]);
  // Runtimes make one factor and one summand a channel of it, once.
  if (node.is(OpKind::BatchNormalization) && node.outputs[0].has_static_shape())
    return 2 * static_cast<double>(element_count(node.outputs[0].static_shape()));
  return work_of(node).operations;
}

// Of a product: few columns fill no register. A product with one is a sum for each row, and slower than that.
double product_efficiency(const Node& node) {
  constexpr double kColumns = 16;
  const auto &shape = node.outputs[0].shape, &other = node.inputs[1].type().shape;
  if (!shape || !other) return kProductEfficiency;
  const bool is_by_vector = other->size() < 2 || shape->empty();
  const auto columns = is_by_vector ? std::optional<int64_t>(1) : shape->back().as_constant();
  if (!columns) return kProductEfficiency;
  return kProductEfficiency * std::clamp(static_cast<double>(*columns) / kColumns, 1 / kColumns, 1.0);
}

double efficiency(const Node& node) {
  if (node.is(OpKind::BatchNormalization)) return kDepthwise;  // which is what it is to a runtime
  if (!is_product(node)) return kLoopEfficiency;
  return node.is(OpKind::Conv) || node.is(OpKind::ConvTranspose) ? convolution_efficiency(node)
                                                                 : product_efficiency(node);
}

// Beside convolutions and concatenations of channels, what takes and makes images in blocks of channels; of elementwise
// operators, where all operands have one shape.
constexpr OpKind kOfImages[] = {OpKind::MaxPool,
                                OpKind::AveragePool,
                                OpKind::GlobalAveragePool,
                                OpKind::GlobalMaxPool,
                                OpKind::BatchNormalization,
                                OpKind::Relu,
                                OpKind::Sigmoid,
                                OpKind::Tanh,
                                OpKind::Add,
                                OpKind::Mul};

// How a value lies: images between convolutions are kept in blocks of channels, all else is plain. Any: a border of a
// part of a graph, which lies as its readers want it.
enum class Lies { Plain, Blocked, Any };

// What runtimes make no kernel of: the output is the input's memory.
bool is_another_name(const Node& node) {
  constexpr OpKind kNames[] = {OpKind::Reshape, OpKind::Flatten, OpKind::Squeeze, OpKind::Unsqueeze, OpKind::Identity};
  return std::find(std::begin(kNames), std::end(kNames), node.op) != std::end(kNames);
}

// Nodes that a file needs to compute what the node's attributes say of open extents: of each its Shape, the choice of
// an axis and the list that they make. A Reshape says an extent that stays where it was, and one other, itself.
int nodes_of_extents(const Node& node) {
  constexpr int kOfOne = 3;
  int open = 0;
  for (const auto& [name, value] : node.attributes) {
    const auto* list = std::get_if<std::vector<Index>>(&value);
    if (!list) continue;
    const auto& before = node.inputs[0].type().shape;
    for (size_t axis = 0; axis < list->size(); axis++) {
      const bool stays =
          node.is(OpKind::Reshape) && before && axis < before->size() && (*before)[axis] == (*list)[axis];
      if (!(*list)[axis].is_constant() && !stays) open++;
    }
  }
  if (node.is(OpKind::Reshape) && open == 1) return 0;
  return kOfOne * open;
}

// ONNX Runtime makes a Gemm between two Reshapes of a product by a matrix with a sum, where the other factor has more
// than two axes.
bool is_reshaped_product(const RuntimeGroup& group) {
  const auto is_sum = [](const NodePtr& node) { return node->is(OpKind::Add); };
  const Node& head = *group.head;
  if (!head.is(OpKind::MatMul) || !head.outputs[0].shape || head.outputs[0].shape->size() <= 2) return false;
  const auto& matrix = head.inputs[1].type().shape;
  return matrix && matrix->size() == 2 && std::any_of(group.nodes.begin(), group.nodes.end(), is_sum);
}

// All of it in pieces.
bool is_normalization(const RuntimeGroup& group) {
  const auto is_mean = [](const NodePtr& node) { return node->is(OpKind::ReduceMean); };
  return group.nodes.size() > 1 && std::ranges::any_of(group.nodes, is_mean) &&
         group.nodes.back()->outputs[0].has_static_shape();
}

class RuntimeCost {
 public:
  RuntimeCost(const Graph& graph, const Roofline& roofline, bool has_free_borders)
      : graph_(graph), roofline_(roofline), has_free_borders_(has_free_borders) {}

  Cost run() {
    for (const RuntimeGroup& group : runtime_groups(graph_)) price(group);
    if (!has_free_borders_)
      for (const GraphOutput& output : graph_.outputs()) want(output.value, Lies::Plain);
    add(kResidence * memory_ms(weight_bytes_));
    return cost_;
  }

 private:
  void add(double ms) { cost_.time_ms += planner::in_steps(ms); }
  double memory_ms(double bytes) const { return bytes / (roofline_.gbps * 1e6); }
  double dispatch_ms() const { return kDispatches * roofline_.launch_us * 1e-3; }
  bool is_weight(const Value& value) const { return graph_.depends_on_weights_only(graph_.id_of(value.node)); }

  // What the group reads from outside, each value once.
  std::set<Value> inputs_of(const RuntimeGroup& group) const {
    const std::set<NodePtr> inside(group.nodes.begin(), group.nodes.end());
    std::set<Value> inputs;
    for (const NodePtr& node : group.nodes)
      for (const Value& input : node->inputs)
        if (input && !inside.contains(input.node)) inputs.insert(input);
    return inputs;
  }

  void price(const RuntimeGroup& group) {
    const std::set<Value> inputs = inputs_of(group);
    lay_out(group, inputs);
    const Node& last = *group.nodes.back();
    double read = 0, written = 0, compute_ms = 0;
    for (const Value& input : inputs) {
      read += bytes_of(input.type());
      if (is_weight(input) && weights_.insert(input).second) weight_bytes_ += bytes_of(input.type());
    }
    for (const TensorType& type : last.outputs) written += bytes_of(type);
    const bool normalizes = is_normalization(group);
    if (normalizes) compute_ms = compute(normalization_operations(last.outputs[0]), last);
    for (const NodePtr& node : group.nodes) {
      if (node->is(OpKind::Opaque) || normalizes) continue;
      const double operations = operations_of(*node);
      // Beside a product only functions count: scales go into its weights, sums are what its results start from.
      if (is_product(*group.head) && !is_product(*node) && node->inputs.size() > 1)
        cost_.operations += operations;
      else
        compute_ms += compute(operations, *node);
    }
    const bool moves = group.nodes.size() == 1 && op_info(last.op).has(kDataMovement);
    if (moves) read = std::min(read, written);  // slices and gathers read no more than they write
    const bool is_free = group.nodes.size() == 1 && (is_another_name(last) || op_info(last.op).has(kShapeOnly));
    if (is_free) read = written = 0;
    if (moves && takes_apart_rows(last)) read *= kApart;
    cost_.bytes += read + written;
    int nodes = static_cast<int>(group.nodes.size()), hidden = is_reshaped_product(group) ? 2 : 0;
    for (const NodePtr& node : group.nodes) {
      const int more = nodes_of_extents(*node);
      nodes += more;
      hidden += more;
    }
    cost_.kernels += nodes;
    add_pass(compute_ms, memory_ms(read + written));
    add(dispatch_ms() * (kNode * nodes + hidden));
  }
  double compute(double operations, const Node& node) {
    cost_.operations += operations;
    return operations / (roofline_.gflops * efficiency(node) * 1e6);
  }
  // Arithmetic and memory overlap, but never wholly: a tenth of the smaller shows.
  void add_pass(double compute_ms, double memory_ms) {
    add(std::max(compute_ms, memory_ms) + 0.1 * std::min(compute_ms, memory_ms) + dispatch_ms());
  }

  // ---- layouts ----

  void lay_out(const RuntimeGroup& group, const std::set<Value>& inputs) {
    const Node &head = *group.head, &last = *group.nodes.back();
    std::vector<Value> images;
    for (const Value& input : inputs)
      if (!is_weight(input)) images.push_back(input);
    Lies made = Lies::Plain;
    if (is_blocked_convolution(head)) {
      made = Lies::Blocked;
      for (const Value& image : images)
        if (!has_few_channels(image)) want(image, Lies::Blocked);
    } else {
      if (keeps_blocks(group, images)) made = common_layout(images);
      for (const Value& image : images)
        if (made == Lies::Plain) want(image, Lies::Plain);
    }
    for (int k = 0; k < static_cast<int>(last.outputs.size()); k++) lies_[{group.nodes.back(), k}] = made;
  }

  static bool is_blocked_convolution(const Node& node) {
    return node.is(OpKind::Conv) && is_image(node.inputs[0]) && convolution_efficiency(node) != kOddGroups;
  }
  static bool has_few_channels(const Value& value) {
    const auto channels = is_image(value) ? (*value.type().shape)[1].as_constant() : std::nullopt;
    return channels && *channels <= kFewChannels;
  }
  static bool keeps_blocks(const RuntimeGroup& group, const std::vector<Value>& images) {
    const Node& node = *group.head;
    if (images.empty() || !std::all_of(images.begin(), images.end(), is_image)) return false;
    if (node.is(OpKind::Concat)) return std::get<Index>(node.attributes.at("axis")) == Index(1);
    if (std::find(std::begin(kOfImages), std::end(kOfImages), node.op) == std::end(kOfImages)) return false;
    const bool is_elementwise = op_info(node.op).has(kElementwise);
    return !is_elementwise || std::all_of(node.inputs.begin(), node.inputs.end(),
                                          [&](const Value& input) { return input.type() == node.outputs[0]; });
  }
  Lies lies(const Value& value) const {
    const auto it = lies_.find(value);
    return it != lies_.end() ? it->second : has_free_borders_ ? Lies::Any : Lies::Plain;
  }
  Lies common_layout(const std::vector<Value>& images) const {
    Lies common = Lies::Any;
    for (const Value& image : images) {
      const Lies own = lies(image);
      if (own == Lies::Plain) return Lies::Plain;
      if (own == Lies::Blocked) common = Lies::Blocked;
    }
    return common;
  }
  // A value that lies otherwise is converted, once for all who want it so.
  void want(const Value& value, Lies layout) {
    const Lies own = lies(value);
    if (own == layout || own == Lies::Any || !converted_.insert({value, layout}).second) return;
    cost_.bytes += 2 * bytes_of(value.type());
    add_pass(0, memory_ms(2 * bytes_of(value.type())));
  }

  const Graph& graph_;
  const Roofline& roofline_;
  const bool has_free_borders_;
  Cost cost_;
  std::map<Value, Lies> lies_;
  std::set<std::pair<Value, Lies>> converted_;
  std::set<Value> weights_;
  double weight_bytes_ = 0;
};

class RuntimeOracle : public CostOracle {
 public:
  explicit RuntimeOracle(const Roofline& roofline) : roofline_(roofline) {}
  Cost estimate(const Graph& graph) override { return RuntimeCost(graph, roofline_, false).run(); }
  Cost estimate_part(const Graph& part) override { return RuntimeCost(part, roofline_, true).run(); }

 private:
  const Roofline roofline_;
};

}  // namespace

std::unique_ptr<CostOracle> runtime_cost_oracle(const Roofline& roofline) {
  return std::make_unique<RuntimeOracle>(roofline);
}

}  // namespace gopt
