#include "export_plan.h"

#include <algorithm>

#include "tensor_proto.h"

namespace gopt::ir {
namespace {

using NodeSet = std::set<const Node*>;

// What the file may grow by in all: that, or a share of the constants' bytes if it is more.
constexpr size_t kGrowth = 16 * 1024;
constexpr double kGrowthShare = 0.02;
// A moved copy of a weight, of so many bytes or more, is another tensor to whoever reads the file.
constexpr size_t kLargeCopy = 64 * 1024;

// What a weight-only node is computed from.
struct Sources {
  NodeSet constants;
  bool is_computed = false;  // not only moved
};

// Nothing where something in between cannot be computed.
std::optional<Sources> sources_of(const NodePtr& root) {
  NodeSet seen{root.get()};
  std::vector<NodePtr> stack{root};
  Sources sources;
  while (!stack.empty()) {
    const NodePtr node = std::move(stack.back());
    stack.pop_back();
    for (const TensorType& type : node->outputs)
      if (!is_computable(type.element) || !type.has_static_shape()) return std::nullopt;
    if (node->is(OpKind::Constant)) {
      sources.constants.insert(node.get());
    } else {
      sources.is_computed |= !op_info(node->op).has(kDataMovement);
    }
    if (op_info(node->op).has(kShapeOnly)) continue;
    for (const Value& input : node->inputs)
      if (input && seen.insert(input.node.get()).second) stack.push_back(input.node);
  }
  return sources;
}

// Decides what is folded, and keeps account of what the file grows by: a folded value is worth the constants that it
// takes the place of, each of them once.
class Folding {
 public:
  // `held`: constants that are written anyway.
  Folding(const Graph& graph, const NodeSet& held) : graph_(graph), held_(held) {
    size_t bytes = 0;
    for (const NodePtr& node : graph.nodes())
      if (node->is(OpKind::Constant)) bytes += node->tensor.bytes().size();
    left_ = std::max(kGrowth, static_cast<size_t>(kGrowthShare * static_cast<double>(bytes)));
  }

  // To be asked once of a node, users first.
  bool takes(const NodePtr& node) {
    if (!graph_.depends_on_weights_only(graph_.id_of(node))) return false;
    const auto sources = sources_of(node);
    if (!sources) return false;
    size_t result = 0, replaced = 0;
    for (const TensorType& type : node->outputs)
      result += tensor_bytes(type.element, type.static_shape()).value_or(SIZE_MAX / 2);
    const auto is_held = [&](const Node* constant) { return held_.contains(constant); };
    if (!sources->is_computed && result >= kLargeCopy && std::ranges::all_of(sources->constants, is_held)) return false;
    for (const Node* constant : sources->constants)
      if (!is_held(constant) && !replaced_.contains(constant)) replaced += constant->tensor.bytes().size();
    const size_t growth = result - std::min(result, replaced);
    if (growth > left_) return false;
    left_ -= growth;
    replaced_.insert(sources->constants.begin(), sources->constants.end());
    return true;
  }

 private:
  const Graph& graph_;
  const NodeSet& held_;
  NodeSet replaced_;
  size_t left_;
};

ExportPlan plan_with(const ExportState& state, Folding folding) {
  const Graph& graph = state.graph;
  std::set<Value> needed;
  NodeSet needed_nodes;
  const auto need = [&](const Value& value) {
    needed.insert(value);
    needed_nodes.insert(value.node.get());
  };
  for (const GraphOutput& output : graph.outputs()) need(output.value);
  ExportPlan plan;
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const NodePtr& node = graph.nodes()[i];
    if (!needed_nodes.contains(node.get()) || node->is(OpKind::Input)) continue;
    if (node->is(OpKind::Constant) || folding.takes(node)) {
      for (int k = static_cast<int>(node->outputs.size()); k-- > 0;)
        if (needed.contains({node, k})) plan.initializers.push_back({node, k});
      continue;
    }
    plan.nodes.push_back(node);
    if (const auto flat = state.flat_softmaxes.find(node.get()); flat != state.flat_softmaxes.end()) {
      need(flat->second.input);
      continue;
    }
    for (const Value& input : node->inputs)
      if (input) need(input);
  }
  std::reverse(plan.nodes.begin(), plan.nodes.end());
  std::reverse(plan.initializers.begin(), plan.initializers.end());
  return plan;
}

}  // namespace

ExportPlan plan_export(const ExportState& state) {
  NodeSet held;
  while (true) {
    ExportPlan plan = plan_with(state, Folding(state.graph, held));
    const size_t known = held.size();
    for (const Value& value : plan.initializers)
      if (value.node->is(OpKind::Constant)) held.insert(value.node.get());
    if (held.size() == known) return plan;
  }
}

}  // namespace gopt::ir
