// What nothing reads is not computed: of a classifier that takes one token of its last layer that layer's product,
// attention and normalization for all others, of a causal network that answers at its last step most of the steps.
#include <algorithm>
#include <unordered_map>

#include "passes/node_part.h"
#include "passes/passes.h"

namespace gopt::optimizer {
namespace {

// A part of more than so much of a tensor is computed as the whole: uneven extents cost more than they save.
constexpr double kLargestShare = 7.0 / 8;

double share_of(const Shape& shape, const Part& part) {
  constexpr double kOfOpen = 0.5;  // of an axis of any extent
  double share = 1;
  for (size_t axis = 0; axis < shape.size(); axis++)
    if (part[axis]) {
      const auto extent = shape[axis].as_constant();
      share *= extent ? static_cast<double>(part[axis]->size) / static_cast<double>(*extent) : kOfOpen;
    }
  return share;
}

class Narrowing {
 public:
  explicit Narrowing(const Graph& graph) : graph_(graph) {
    builder_.set_broadcast_unknown(true);
    builder_.adopt(graph);
    for (const GraphOutput& output : graph.outputs()) read_whole(output.value);
    const std::vector<NodePtr>& nodes = graph.nodes();
    for (size_t i = nodes.size(); i-- > 0;) visit(nodes[i]);
  }

  // In the order of nodes, so that what a part is made of is there.
  Replacements run() {
    Replacements replacements;
    for (const NodePtr& node : graph_.nodes())
      for (size_t output = 0; output < node->outputs.size(); output++) {
        const Value value{node, static_cast<int>(output)};
        const auto plan = plans_.find(value);
        if (plan == plans_.end()) continue;
        const bool is_part = !is_whole(reads_.at(value));
        if (!is_part && !reads_narrowed(*node, plan->second)) continue;
        const auto built = build(value, plan->second);
        if (is_part)
          built_.emplace(value, built);
        else if (built && built->type() == value.type() && !(*built == value))
          replacements.emplace_back(value, *built);
      }
    return replacements;
  }

 private:
  // Users come before what they use: what is read of the node's outputs is known.
  void visit(const NodePtr& node) {
    const bool is_leaf = node->is(OpKind::Input) || node->is(OpKind::Constant) || node->is(OpKind::Opaque) ||
                         graph_.depends_on_weights_only(graph_.id_of(node));
    for (size_t output = 0; output < node->outputs.size(); output++) {
      const Value value{node, static_cast<int>(output)};
      const auto it = reads_.find(value);
      if (it == reads_.end()) continue;
      Part& part = it->second;
      if (!is_whole(part) && share_of(*value.type().shape, part) > kLargestShare) part = Part(part.size());
      auto plan = !is_leaf && may_narrow(*node, part) ? part_of(value, part) : std::nullopt;
      if (!plan) {
        part = Part(part.size());
        for (const Value& input : node->inputs)
          if (input) read_whole(input);
        continue;
      }
      for (size_t k = 0; k < node->inputs.size(); k++)
        if (plan->reads[k]) read(node->inputs[k], *plan->reads[k]);
      plans_.emplace(value, *std::move(plan));
    }
  }

  // Operators of which a whole output may read a part of an input.
  static bool may_narrow(const Node& node, const Part& part) {
    return !is_whole(part) || (node.op != OpKind::Opaque && op_info(node.op).has(kDataMovement));
  }

  void read(const Value& value, const Part& part) {
    const auto [it, is_first] = reads_.try_emplace(value, part);
    if (!is_first) it->second = hull(it->second, part);
  }
  void read_whole(const Value& value) { read(value, Part(value.type().shape ? value.type().shape->size() : 0)); }

  bool reads_narrowed(const Node& node, const NodePart& plan) const {
    for (size_t k = 0; k < node.inputs.size(); k++)
      if (plan.reads[k] && !is_whole(reads_.at(node.inputs[k]))) return true;
    return false;
  }

  std::optional<Value> build(const Value& value, const NodePart& plan) {
    std::vector<Value> inputs;
    for (size_t k = 0; k < value.node->inputs.size(); k++) {
      const Value& input = value.node->inputs[k];
      if (!plan.reads[k] || (plan.copied && *plan.copied != k)) {
        if (!input) inputs.emplace_back();
        continue;
      }
      const auto part = sliced(input, *plan.reads[k]);
      if (!part) return std::nullopt;
      if (plan.copied) return part;
      inputs.push_back(*part);
    }
    const auto node = builder_.add(plan.op, std::move(inputs), plan.attributes, 1, value.node->name);
    return node.ok() ? std::optional(Value{*node, 0}) : std::nullopt;
  }

  // The part of the value, cut out of what stands for all of it that is read.
  std::optional<Value> sliced(const Value& value, const Part& part) {
    const Part& of = reads_.at(value);
    const std::optional<Value> all = is_whole(of) ? value : built_.at(value);
    if (!all || of == part) return all;
    std::vector<Index> axes, starts, ends, steps;
    for (size_t axis = 0; axis < part.size(); axis++) {
      if (!part[axis] || part[axis] == of[axis]) continue;
      const PartOfAxis outer = of[axis].value_or(PartOfAxis{}), own = *part[axis];
      axes.emplace_back(static_cast<int64_t>(axis));
      starts.emplace_back((own.begin - outer.begin) / outer.step);
      ends.emplace_back((own.last() - outer.begin) / outer.step + 1);
      steps.emplace_back(own.size > 1 ? own.step / outer.step : 1);
    }
    Attributes attributes{{"axes", axes}, {"starts", starts}, {"ends", ends}, {"steps", steps}};
    const auto slice = builder_.apply(OpKind::Slice, {*all}, std::move(attributes));
    return slice.ok() ? std::optional(*slice) : std::nullopt;
  }

  const Graph& graph_;
  GraphBuilder builder_;
  std::unordered_map<Value, Part, HashOfValue> reads_;
  std::unordered_map<Value, NodePart, HashOfValue> plans_;
  std::unordered_map<Value, std::optional<Value>, HashOfValue> built_;  // of values that are not read as a whole
};

}  // namespace

Replacements narrow_to_reads(const Graph& graph) { return Narrowing(graph).run(); }

}  // namespace gopt::optimizer
