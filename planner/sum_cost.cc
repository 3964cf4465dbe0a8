// The cost of a graph as the sum of its operators', each planned alone: what a search goes by that knows of no fusion
// and no layouts, for comparison.
#include <mutex>
#include <unordered_map>

#include "gopt/kernel_costs.h"

namespace gopt {
namespace {

// The node with inputs in place of what runs before it; weights are as they are.
Graph alone(const Graph& graph, const NodePtr& node) {
  GraphBuilder builder;
  std::vector<Value> inputs;
  std::map<Value, Value> known;
  for (const Value& input : node->inputs) {
    const bool is_free = !input || graph.depends_on_weights_only(graph.id_of(input.node));
    if (!is_free && !known.contains(input))
      known[input] = builder.input("x" + std::to_string(known.size()), input.type());
    inputs.push_back(is_free ? input : known[input]);
  }
  const NodePtr copy = builder.copy(*node, std::move(inputs));
  for (size_t k = 0; k < copy->outputs.size(); k++)
    builder.output("y" + std::to_string(k), {copy, static_cast<int>(k)});
  return builder.build();
}

class SumOracle : public CostOracle {
 public:
  explicit SumOracle(std::unique_ptr<CostOracle> plans) : plans_(std::move(plans)) {}

  Cost estimate(const Graph& graph) override {
    Cost sum;
    for (uint32_t k = 0; k < graph.nodes().size(); k++) {
      const NodePtr& node = graph.nodes()[k];
      if (node->is(OpKind::Input) || graph.depends_on_weights_only(NodeId{k})) continue;
      const Cost own = cost_of(graph, node);
      sum.time_ms += own.time_ms;
      sum.operations += own.operations;
      sum.bytes += own.bytes;
      sum.kernels += own.kernels;
    }
    return sum;
  }
  double uncertainty() const override { return plans_->uncertainty(); }

 private:
  // By structure: equal nodes over other values cost the same.
  Cost cost_of(const Graph& graph, const NodePtr& node) {
    const Graph single = alone(graph, node);
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = known_.find(single.hash()); known != known_.end()) return known->second;
    }
    const Cost cost = plans_->estimate(single);
    const std::lock_guard lock(mutex_);
    return known_[single.hash()] = cost;
  }

  std::unique_ptr<CostOracle> plans_;
  std::mutex mutex_;
  std::unordered_map<Hash128, Cost, HashOfHash128> known_;
};

}  // namespace

std::unique_ptr<CostOracle> sum_cost_oracle(const Target& target, std::unique_ptr<KernelCosts> kernel_costs) {
  return std::make_unique<SumOracle>(plan_cost_oracle(target, std::move(kernel_costs)));
}

}  // namespace gopt
