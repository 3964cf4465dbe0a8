#include "passes/lineage.h"

namespace gopt::optimizer {
namespace {

using Nodes = std::set<NodeId>;

std::vector<NodeId> listed(const Nodes& nodes) { return {nodes.begin(), nodes.end()}; }

void add(Nodes& to, const Nodes& from) { to.insert(from.begin(), from.end()); }

// Nodes of the graph after the step that give the values which the node gave.
Nodes standing_for(const RewriteStep& step, const NodePtr& node) {
  Nodes found;
  for (int output = 0; output < static_cast<int>(node->outputs.size()); output++) {
    const auto value = step.became.find({node, output});
    if (value != step.became.end() && step.after.contains(value->second.node))
      found.insert(step.after.id_of(value->second.node));
  }
  return found;
}

Nodes made_by(const RewriteStep& step, const RuleUse& use) {
  Nodes made;
  for (const NodePtr& node : use.made) add(made, standing_for(step, node));
  return made;
}

// By node of the graph before: what took its place.
std::vector<Nodes> successors(const RewriteStep& step) {
  std::vector<Nodes> next;
  for (const NodePtr& node : step.before.nodes()) next.push_back(standing_for(step, node));
  for (const auto* uses : {&step.uses, &step.others}) {
    for (const RuleUse& use : *uses) {
      const Nodes made = made_by(step, use);
      for (const NodePtr& node : use.matched) add(next[static_cast<size_t>(step.before.id_of(node))], made);
    }
  }
  return next;
}

}  // namespace

Lineage::Lineage(const Graph& first) {
  for (uint32_t node = 0; node < first.nodes().size(); node++) origins_.push_back({NodeId{node}});
}

void Lineage::follow(const RewriteStep& step) {
  GOPT_CHECK(origins_.size() == step.before.nodes().size(), "a step that does not follow from the last");
  const std::vector<Nodes> next = successors(step);
  for (Traced& use : uses_) {
    Nodes made;
    for (NodeId node : use.made) add(made, next[static_cast<size_t>(node)]);
    use.made = std::move(made);
  }
  for (const RuleUse& use : step.uses) {
    Traced traced{{}, made_by(step, use)};
    for (const NodePtr& node : use.matched)
      add(traced.replaced, origins_[static_cast<size_t>(step.before.id_of(node))]);
    uses_.push_back(std::move(traced));
  }
  std::vector<Nodes> origins(step.after.nodes().size());
  for (size_t node = 0; node < next.size(); node++)
    for (NodeId successor : next[node]) add(origins[static_cast<size_t>(successor)], origins_[node]);
  origins_ = std::move(origins);
}

std::vector<std::vector<NodeId>> Lineage::origins() const {
  std::vector<std::vector<NodeId>> all;
  for (const Nodes& nodes : origins_) all.push_back(listed(nodes));
  return all;
}
std::vector<NodeId> Lineage::replaced(size_t use) const { return listed(uses_.at(use).replaced); }
std::vector<NodeId> Lineage::made(size_t use) const { return listed(uses_.at(use).made); }

}  // namespace gopt::optimizer
