#include <algorithm>
#include <map>

#include "passes/passes.h"

namespace gopt::optimizer {
namespace {

// Pairs each output of `later` with that of the node that stands for it.
void add_outputs(const NodePtr& later, const NodePtr& earlier, Replacements& replacements) {
  for (size_t output = 0; output < later->outputs.size(); output++)
    replacements.emplace_back(Value{later, static_cast<int>(output)}, Value{earlier, static_cast<int>(output)});
}

bool is_mergeable(const Node& node) { return !node.is(OpKind::Input) && !node.is(OpKind::Opaque); }

}  // namespace

Replacements merge_equal_nodes(const Graph& graph) {
  std::map<Hash128, NodePtr> first;
  Replacements replacements;
  for (const NodePtr& node : graph.nodes()) {
    if (!is_mergeable(*node)) continue;
    const auto [entry, is_new] = first.try_emplace(node->hash, node);
    if (!is_new) add_outputs(node, entry->second, replacements);
  }
  return replacements;
}

Replacements merge_commuted_nodes(const Graph& graph) {
  using Key = std::pair<OpKind, std::vector<std::pair<Hash128, int>>>;
  std::map<Key, NodePtr> first;
  Replacements replacements;
  for (const NodePtr& node : graph.nodes()) {
    if (!is_mergeable(*node) || node->is(OpKind::Constant) || !op_info(node->op).has(kCommutative)) continue;
    Key key{node->op, {}};
    for (const Value& input : node->inputs) key.second.emplace_back(input.node->hash, input.output);
    std::sort(key.second.begin(), key.second.end());
    const auto [entry, is_new] = first.try_emplace(std::move(key), node);
    const bool has_attributes = !node->attributes.empty();
    if (!is_new && !has_attributes && entry->second->outputs == node->outputs)
      add_outputs(node, entry->second, replacements);
  }
  return replacements;
}

}  // namespace gopt::optimizer
