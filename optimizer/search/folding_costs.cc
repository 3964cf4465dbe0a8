#include "search/folding_costs.h"

#include <algorithm>
#include <limits>

#include "gopt/node_attributes.h"

namespace gopt::optimizer {
namespace {

// Of an element of the result: how many products are summed up.
double depth_of(const Node& node) {
  const auto dims = [&](size_t input) { return node.inputs[input].type().static_shape(); };
  if (node.is(OpKind::MatMul)) return static_cast<double>(dims(0).back());
  if (node.is(OpKind::Gemm)) return static_cast<double>(dims(0)[int_or(node, "transA", 0) != 0 ? 0 : 1]);
  const std::vector<int64_t> window = dims(1);
  return static_cast<double>(element_count(window) / std::max<int64_t>(1, window[0]));
}

bool is_product_of_numbers(const Node& node) {
  const bool is_product = node.is(OpKind::MatMul) || node.is(OpKind::Gemm) || node.is(OpKind::Conv);
  return is_product && node.outputs[0].has_static_shape() && node.inputs[0].type().has_static_shape() &&
         node.inputs[1].type().has_static_shape();
}

Cost unaffordable() {
  Cost cost;
  cost.time_ms = std::numeric_limits<double>::infinity();
  return cost;
}

}  // namespace

double folded_operations(const Graph& graph) {
  double operations = 0;
  for (uint32_t id = 0; id < graph.nodes().size(); id++) {
    const Node& node = *graph.nodes()[id];
    if (is_product_of_numbers(node) && graph.depends_on_weights_only(NodeId{id}))
      operations += 2 * static_cast<double>(element_count(node.outputs[0].static_shape())) * depth_of(node);
  }
  return operations;
}

FoldingCosts::FoldingCosts(CostOracle& costs, const Graph& graph) : costs_(costs) {
  constexpr double kMostOperations = 2e10;  // ten seconds of two processors
  most_operations_ = std::max(kMostOperations, folded_operations(graph));
}

Cost FoldingCosts::estimate(const Graph& graph) { return is_too_much(graph) ? unaffordable() : costs_.estimate(graph); }
Cost FoldingCosts::estimate_part(const Graph& part) {
  return is_too_much(part) ? unaffordable() : costs_.estimate_part(part);
}

}  // namespace gopt::optimizer
