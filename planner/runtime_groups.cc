#include "runtime_groups.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "cover.h"
#include "gopt/text.h"

namespace gopt::planner {
namespace {

// ---- what is fused: data ----

// What the other inputs of a node have to be, that it can join its neighbour.
enum class Operand {
  None,
  Parameters,  // of weights alone, as BatchNormalization has them
  Channel,     // of weights alone: one number for each channel of a convolution, or column of a matrix
  Scalar,      // of weights alone: one number
  Tensor,      // of the shape of the result
};

// `next` after `head`, whose kernel applies it before it stores its result. Steps are taken in the order of `stage`,
// those of stage 0 any number of times.
struct FusedAfter {
  OpKind head;
  int stage;
  OpKind next;
  Operand operand;
};
constexpr FusedAfter kFusedAfter[] = {
    {OpKind::Conv, 0, OpKind::BatchNormalization, Operand::Parameters},
    {OpKind::Conv, 0, OpKind::Mul, Operand::Channel},
    {OpKind::Conv, 0, OpKind::Add, Operand::Channel},
    {OpKind::Conv, 1, OpKind::Add, Operand::Tensor},
    {OpKind::Conv, 2, OpKind::Relu, Operand::None},
    {OpKind::Conv, 2, OpKind::Clip, Operand::None},
    {OpKind::Conv, 2, OpKind::LeakyRelu, Operand::None},
    {OpKind::Conv, 2, OpKind::Sigmoid, Operand::None},
    {OpKind::Conv, 2, OpKind::Tanh, Operand::None},
    {OpKind::BatchNormalization, 2, OpKind::Relu, Operand::None},
    {OpKind::MatMul, 0, OpKind::Mul, Operand::Scalar},
    {OpKind::MatMul, 0, OpKind::Div, Operand::Scalar},
    {OpKind::MatMul, 1, OpKind::Add, Operand::Channel},
    {OpKind::MatMul, 2, OpKind::Relu, Operand::None},
    {OpKind::MatMul, 2, OpKind::LeakyRelu, Operand::None},
    {OpKind::MatMul, 2, OpKind::Sigmoid, Operand::None},
    {OpKind::MatMul, 2, OpKind::Tanh, Operand::None},
    {OpKind::Gemm, 2, OpKind::Relu, Operand::None},
    {OpKind::Gemm, 2, OpKind::LeakyRelu, Operand::None},
    {OpKind::Gemm, 2, OpKind::Sigmoid, Operand::None},
    {OpKind::Gemm, 2, OpKind::Tanh, Operand::None},
};
// A product alone takes no activation: its bias makes it a Gemm, which does.
bool needs_stage_one(const FusedAfter& row) { return row.head == OpKind::MatMul && row.stage == 2; }

// `first` before `head`, whose kernel applies it as it reads.
struct FusedBefore {
  OpKind head, first;
  Operand operand;
};
constexpr FusedBefore kFusedBefore[] = {
    {OpKind::MatMul, OpKind::Mul, Operand::Scalar},     {OpKind::MatMul, OpKind::Div, Operand::Scalar},
    {OpKind::MatMul, OpKind::Transpose, Operand::None}, {OpKind::Gemm, OpKind::Transpose, Operand::None},
    {OpKind::Conv, OpKind::Pad, Operand::None},
};

// Graphs that are one kernel. x to w stand for anything, constants for themselves; attributes are not compared.
constexpr const char* kPatternHead =
    "graph pattern\ninput x : f32[4,4]\ninput y : f32[4]\ninput z : f32[4]\ninput w : f32[4]\n"
    "constant half = f32[] {0.5}\nconstant one = f32[] {1}\nconstant two = f32[] {2}\nconstant three = f32[] {3}\n"
    "constant sqrt_two = f32[] {1.4142135}\nconstant half_sqrt = f32[] {0.70710678}\nconstant quick = f32[] {1.702}\n"
    "constant cubic = f32[] {0.044715}\nconstant slope = f32[] {0.7978846}\n";
constexpr const char* kPatterns[] = {
    // Gelu, in the orders in which exporters write it
    "d = Div(x, sqrt_two)\ne = Erf(d)\na = Add(e, one)\nm = Mul(x, a)\nr = Mul(m, half)",
    "d = Div(x, sqrt_two)\ne = Erf(d)\na = Add(e, one)\nh = Mul(x, half)\nr = Mul(h, a)",
    "d = Mul(x, half_sqrt)\ne = Erf(d)\na = Add(e, one)\nm = Mul(x, a)\nr = Mul(m, half)",
    "d = Mul(x, half_sqrt)\ne = Erf(d)\na = Add(e, one)\nh = Mul(x, half)\nr = Mul(h, a)",
    "d = Mul(x, half_sqrt)\ne = Erf(d)\na = Add(e, one)\nh = Mul(a, half)\nr = Mul(x, h)",
    "d = Div(x, sqrt_two)\ne = Erf(d)\na = Add(e, one)\nh = Mul(a, half)\nr = Mul(x, h)",
    // its approximations
    "c = Pow(x, three)\nk = Mul(c, cubic)\ns = Add(x, k)\nl = Mul(s, slope)\nt = Tanh(l)\na = Add(t, one)\n"
    "h = Mul(x, half)\nr = Mul(h, a)",
    "c = Pow(x, three)\nk = Mul(c, cubic)\ns = Add(x, k)\nl = Mul(s, slope)\nt = Tanh(l)\na = Add(t, one)\n"
    "m = Mul(x, a)\nr = Mul(m, half)",
    "k = Mul(x, quick)\ns = Sigmoid(k)\nr = Mul(x, s)",
    "s = Sigmoid(x)\nr = Mul(x, s)",
    // LayerNormalization, with scale and bias: without bias it is its last part, of what has no mean; and after an
    // addition
    "m = ReduceMean(x) {axes=[1]}\nd = Sub(x, m)\np = Pow(d, two)\nv = ReduceMean(p) {axes=[1]}\ne = Add(v, w)\n"
    "s = Sqrt(e)\nn = Div(d, s)\ng = Mul(n, y)\nr = Add(g, z)",
    "m = ReduceMean(x) {axes=[1]}\nd = Sub(x, m)\np = Mul(d, d)\nv = ReduceMean(p) {axes=[1]}\ne = Add(v, w)\n"
    "s = Sqrt(e)\nn = Div(d, s)\ng = Mul(n, y)\nr = Add(g, z)",
    "p = Pow(x, two)\nv = ReduceMean(p) {axes=[1]}\ne = Add(v, w)\ns = Sqrt(e)\nn = Div(x, s)\nr = Mul(n, y)",
    "p = Pow(x, two)\nv = ReduceMean(p) {axes=[1]}\ne = Add(v, w)\ns = Sqrt(e)\ni = Div(one, s)\nn = Mul(x, i)\nr = "
    "Mul(n, y)",
    "p = Pow(x, two)\nv = ReduceMean(p) {axes=[1]}\ne = Add(v, w)\ns = Sqrt(e)\ni = Reciprocal(s)\nn = Mul(x, i)\nr = "
    "Mul(n, y)",
    "a = Add(x, y)\nr = LayerNormalization(a, z, w)",
};

// ---- patterns ----

std::vector<Graph> parsed_patterns() {
  std::vector<Graph> patterns;
  for (const std::string text : kPatterns) {
    auto graph = parse_graph(kPatternHead + text + "\noutput o = r\nend");
    GOPT_CHECK(graph.ok(), "a pattern of runtimes: " + (graph.ok() ? "" : graph.error().message));
    patterns.push_back(*std::move(graph));
  }
  return patterns;
}

std::optional<double> scalar_of(const Value& value) {
  if (!value.node->is(OpKind::Constant) || !is_floating(value.node->tensor.type())) return std::nullopt;
  if (value.node->tensor.count() != 1) return std::nullopt;
  return value.node->tensor.to_doubles()[0];
}

// Where one pattern occurs.
class PatternMatch {
 public:
  bool match(const Value& pattern, const Value& value) {
    const Node &wanted = *pattern.node, &node = *value.node;
    if (wanted.is(OpKind::Input)) return bind(pattern, value);
    if (wanted.is(OpKind::Constant)) {
      const auto number = scalar_of(value);
      return number && std::fabs(*number - *scalar_of(pattern)) <= 1e-3 * std::fabs(*scalar_of(pattern));
    }
    if (node.op != wanted.op || node.inputs.size() != wanted.inputs.size() || value.output != pattern.output)
      return false;
    const PatternMatch before = *this;
    if (bind(pattern, value) && match_inputs(wanted, node, false)) return true;
    *this = before;
    const bool may_swap = op_info(wanted.op).has(kCommutative) && wanted.inputs.size() == 2;
    return may_swap && bind(pattern, value) && match_inputs(wanted, node, true);
  }
  // Nodes that the pattern computes.
  std::set<NodePtr> nodes() const {
    std::set<NodePtr> found;
    for (const auto& [pattern, value] : bound_)
      if (!pattern.node->is(OpKind::Input)) found.insert(value.node);
    return found;
  }

 private:
  bool bind(const Value& pattern, const Value& value) {
    return bound_.try_emplace(pattern, value).first->second == value;
  }
  bool match_inputs(const Node& wanted, const Node& node, bool swapped) {
    const size_t count = wanted.inputs.size();
    for (size_t k = 0; k < count; k++) {
      const Value& input = node.inputs[swapped ? count - 1 - k : k];
      if (!input || !match(wanted.inputs[k], input)) return false;
    }
    return true;
  }

  std::map<Value, Value> bound_;
};

// ---- groups ----

int64_t elements(const Value& value) {
  const TensorType& type = value.type();
  return type.has_static_shape() ? element_count(type.static_shape()) : -1;
}

class Grouper {
 public:
  explicit Grouper(const Graph& graph) : graph_(graph), group_of_(graph.nodes().size(), -1) {
    for (const GraphOutput& output : graph.outputs()) outputs_.insert(output.value.node.get());
  }

  std::vector<RuntimeGroup> run() {
    for (uint32_t id = 0; id < graph_.nodes().size(); id++)
      if (runs(id)) start_group(id);
    for (uint32_t id = 0; id < graph_.nodes().size(); id++)
      if (runs(id)) join_product(id);
    static const std::vector<Graph> patterns = parsed_patterns();
    for (const Graph& pattern : patterns)  // in their order: what a later one is may be a part of an earlier one
      for (uint32_t id = 0; id < graph_.nodes().size(); id++)
        if (runs(id)) match_pattern(pattern, id);
    for (uint32_t id = 0; id < graph_.nodes().size(); id++)
      if (runs(id)) take_before(id);
    return in_order();
  }

 private:
  struct Growing {
    uint32_t head;
    int stage = 0;
    std::set<uint32_t> nodes;
  };

  uint32_t id_of(const NodePtr& node) const { return static_cast<uint32_t>(graph_.id_of(node)); }
  const Node& node(uint32_t id) const { return *graph_.nodes()[id]; }
  bool is_weight(const Value& value) const { return graph_.depends_on_weights_only(graph_.id_of(value.node)); }
  bool runs(uint32_t id) const {
    return !node(id).is(OpKind::Input) && !graph_.depends_on_weights_only(static_cast<NodeId>(id));
  }
  Growing& group(uint32_t id) { return groups_[static_cast<size_t>(group_of_[id])]; }
  bool is_alone(uint32_t id) { return group(id).nodes.size() == 1; }
  // Nobody but that one group reads it.
  bool is_private(uint32_t id, const std::set<uint32_t>& readers) const {
    if (outputs_.contains(graph_.nodes()[id].get()) || node(id).outputs.size() != 1) return false;
    const auto& users = graph_.users()[id];
    return std::all_of(users.begin(), users.end(),
                       [&](NodeId user) { return readers.contains(static_cast<uint32_t>(user)); });
  }

  void start_group(uint32_t id) {
    group_of_[id] = static_cast<int>(groups_.size());
    groups_.push_back({id, 0, {id}});
  }
  void move(uint32_t id, uint32_t into) {
    group(id).nodes.clear();
    group_of_[id] = group_of_[into];
    group(into).nodes.insert(id);
  }

  void match_pattern(const Graph& pattern, uint32_t root) {
    const Value& result = pattern.outputs()[0].value;
    PatternMatch match;
    if (result.node->op != node(root).op || !match.match(result, {graph_.nodes()[root], 0})) return;
    std::set<uint32_t> ids;
    for (const NodePtr& matched : match.nodes()) ids.insert(id_of(matched));
    const bool is_free = std::all_of(ids.begin(), ids.end(), [&](uint32_t id) {
      return runs(id) && is_alone(id) && (id == root || is_private(id, ids));
    });
    if (!is_free) return;
    for (uint32_t id : ids)
      if (id != root) move(id, root);
  }

  bool fits(Operand operand, const Node& next, size_t chained) const {
    const auto others = [&](auto&& holds) {
      for (size_t k = 0; k < next.inputs.size(); k++)
        if (k != chained && next.inputs[k] && !holds(next.inputs[k])) return false;
      return true;
    };
    switch (operand) {
      case Operand::None: return others([](const Value& v) { return v.node->is(OpKind::Constant); });
      case Operand::Parameters: return others([&](const Value& v) { return is_weight(v); });
      case Operand::Scalar: return others([&](const Value& v) { return is_weight(v) && elements(v) == 1; });
      case Operand::Channel:
        return others(
            [&](const Value& v) { return is_weight(v) && is_per_channel(elements(v), next.inputs[chained]); });
      case Operand::Tensor:
        return others([&](const Value& v) { return !is_weight(v) && v.type() == next.inputs[chained].type(); });
    }
    return false;
  }
  static bool is_per_channel(int64_t count, const Value& result) {
    if (!result.type().shape || result.type().shape->empty()) return count == 1;
    const bool is_convolution = result.type().shape->size() >= 3 && !result.node->is(OpKind::MatMul);
    const Index extent = is_convolution ? (*result.type().shape)[1] : result.type().shape->back();
    return count == 1 || Index(count) == extent;
  }

  // A node goes into the product that makes one of its inputs, where that product applies it.
  void join_product(uint32_t id) {
    if (!is_alone(id)) return;
    const Node& next = node(id);
    for (size_t k = 0; k < next.inputs.size(); k++) {
      if (!next.inputs[k] || is_weight(next.inputs[k]) || next.inputs[k].node->is(OpKind::Input)) continue;
      const uint32_t before = id_of(next.inputs[k].node);
      if (!is_private(before, {id})) continue;
      Growing& product = group(before);
      for (const FusedAfter& row : kFusedAfter) {
        if (row.next != next.op || row.head != node(product.head).op || row.stage < product.stage) continue;
        if (row.stage > 0 && row.stage == product.stage) continue;
        if ((needs_stage_one(row) && product.stage < 1) || !fits(row.operand, next, k)) continue;
        move(id, before);
        product.stage = row.stage;
        return;
      }
    }
  }

  void take_before(uint32_t id) {
    for (const Value& input : node(id).inputs) {
      if (!input || is_weight(input) || input.node->is(OpKind::Input)) continue;
      const uint32_t before = id_of(input.node);
      if (!is_alone(before) || !is_private(before, {id}) || group(id).head != id) continue;
      for (const FusedBefore& row : kFusedBefore)
        if (row.head == node(id).op && row.first == node(before).op && is_applied_on_reading(node(before), row)) {
          move(before, id);
          break;
        }
    }
  }
  bool is_applied_on_reading(const Node& first, const FusedBefore& row) const {
    if (first.is(OpKind::Transpose)) return swaps_last_axes(first);
    for (size_t k = 0; k < first.inputs.size(); k++)
      if (!is_weight(first.inputs[k])) return fits(row.operand, first, k);
    return false;
  }
  static bool swaps_last_axes(const Node& transpose) {
    const auto it = transpose.attributes.find("perm");
    const auto* perm = it == transpose.attributes.end() ? nullptr : std::get_if<std::vector<Index>>(&it->second);
    if (!perm || perm->size() < 2) return false;
    for (size_t axis = 0; axis < perm->size(); axis++) {
      const size_t rank = perm->size();
      const size_t wanted = axis + 2 < rank ? axis : 2 * rank - 3 - axis;
      if ((*perm)[axis] != Index(static_cast<int64_t>(wanted))) return false;
    }
    return true;
  }

  // By their last nodes: what a group reads from outside was made by groups that end before.
  std::vector<RuntimeGroup> in_order() {
    std::sort(groups_.begin(), groups_.end(), [](const Growing& a, const Growing& b) {
      if (a.nodes.empty() || b.nodes.empty()) return a.nodes.size() > b.nodes.size();
      return *a.nodes.rbegin() < *b.nodes.rbegin();
    });
    std::vector<RuntimeGroup> groups;
    for (const Growing& growing : groups_) {
      if (growing.nodes.empty()) break;
      RuntimeGroup group{{}, graph_.nodes()[growing.head]};
      for (uint32_t id : growing.nodes) group.nodes.push_back(graph_.nodes()[id]);
      groups.push_back(std::move(group));
    }
    return groups;
  }

  const Graph& graph_;
  std::vector<int> group_of_;
  std::vector<Growing> groups_;
  std::set<const Node*> outputs_;
};

}  // namespace

std::vector<RuntimeGroup> runtime_groups(const Graph& graph) { return Grouper(graph).run(); }

}  // namespace gopt::planner
