#include "mutation/heavy_subgraphs.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "gopt/contains.h"

namespace gopt::driver {
namespace {

class SubgraphChooser {
 public:
  SubgraphChooser(const Plan& plan, size_t most_nodes) : graph_(plan.graph), most_nodes_(most_nodes) {
    for (const Kernel& kernel : plan.kernels)
      for (const NodePtr& node : kernel.nodes)
        if (runs(node)) milliseconds_[graph_.id_of(node)] += kernel.estimated_ms;
  }

  std::vector<std::set<NodeId>> run(const Plan& plan) {
    std::vector<size_t> order(plan.kernels.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(
        order, [&](size_t a, size_t b) { return plan.kernels[a].estimated_ms > plan.kernels[b].estimated_ms; });
    std::vector<std::set<NodeId>> all;
    for (size_t number : order) {
      std::set<NodeId> chosen;
      for (const NodePtr& node : plan.kernels[number].nodes)
        if (runs(node) && chosen.size() < most_nodes_) chosen.insert(graph_.id_of(node));
      if (chosen.empty()) continue;
      while (chosen.size() < most_nodes_ && grow(chosen)) continue;
      if (!contains(all, chosen)) all.push_back(std::move(chosen));
    }
    return all;
  }

 private:
  bool runs(const NodePtr& node) const {
    return graph_.contains(node) && !node->is(OpKind::Input) && !graph_.depends_on_weights_only(graph_.id_of(node));
  }

  // By what is dearest around it; false where nothing is that fits.
  bool grow(std::set<NodeId>& chosen) const {
    std::vector<std::set<NodeId>> additions;
    const auto add = [&](std::set<NodeId> some) {
      std::erase_if(some, [&](NodeId id) { return chosen.contains(id) || !runs(graph_.node(id)); });
      if (!some.empty() && chosen.size() + some.size() <= most_nodes_) additions.push_back(std::move(some));
    };
    for (NodeId own : chosen) {
      for (NodeId user : users(own)) {
        add({user});
        for (NodeId operand : operands(user)) add({user, operand});
      }
      for (NodeId operand : operands(own)) {
        add({operand});
        for (NodeId sibling : users(operand)) add({sibling});
      }
    }
    if (additions.empty()) return false;
    chosen.merge(*std::ranges::max_element(additions, {}, [&](const std::set<NodeId>& some) {
      double sum = 0;
      for (NodeId id : some)
        if (const auto known = milliseconds_.find(id); known != milliseconds_.end()) sum += known->second;
      return sum;
    }));
    return true;
  }
  const std::vector<NodeId>& users(NodeId id) const { return graph_.users()[static_cast<uint32_t>(id)]; }
  std::vector<NodeId> operands(NodeId id) const {
    std::vector<NodeId> found;
    for (const Value& input : graph_.node(id)->inputs)
      if (input) found.push_back(graph_.id_of(input.node));
    return found;
  }

  const Graph& graph_;
  const size_t most_nodes_;
  std::map<NodeId, double> milliseconds_;  // of the kernels that cover it
};

}  // namespace

std::vector<std::set<NodeId>> heavy_subgraphs(const Plan& plan, size_t most_nodes) {
  return SubgraphChooser(plan, most_nodes).run(plan);
}

}  // namespace gopt::driver
