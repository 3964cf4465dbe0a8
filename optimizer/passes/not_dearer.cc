#include "passes/not_dearer.h"

#include <algorithm>
#include <map>
#include <string>

#include "search/part.h"

namespace gopt::optimizer {
namespace {

using Places = std::vector<uint32_t>;

// Operator, attributes and types of a node and of those around it, so many edges away.
std::string surroundings(const Graph& graph, NodeId id, int edges) {
  constexpr size_t kMostUsers = 8;  // that are looked at
  const Node& node = *graph.nodes()[static_cast<size_t>(id)];
  std::string text = node.is(OpKind::Opaque) ? node.opaque->op_type : op_info(node.op).name;
  for (const auto& [name, value] : node.attributes) text += " " + name + "=" + to_string(value);
  for (const TensorType& type : node.outputs) text += " " + to_string(type);
  if (edges == 0 || node.is(OpKind::Constant)) return text;
  for (const Value& input : node.inputs)
    text += input ? " (" + surroundings(graph, graph.id_of(input.node), edges - 1) + ")" : " ()";
  const std::vector<NodeId>& users = graph.users()[static_cast<size_t>(id)];
  text += " " + std::to_string(users.size());
  for (size_t k = 0; k < std::min(users.size(), kMostUsers); k++)
    text += " <" + surroundings(graph, users[k], edges - 1) + ">";
  return text;
}

class Choice {
 public:
  Choice(const Graph& graph, const Replacements& replacements, CostOracle& costs)
      : graph_(graph), replacements_(replacements), costs_(costs), now_ms_(costs.estimate(graph).time_ms) {}

  // All, or those of kinds that are not dearer around one of them.
  Places run() && {
    std::vector<Places> all = kinds();
    if (take(joined(all))) return std::move(kept_);
    std::erase_if(all, [&](const Places& kind) { return is_dearer_around(kind[kind.size() / 2]); });
    take_among(all);
    return std::move(kept_);
  }

 private:
  // By kinds, each in order, at first those whose first replacement is first.
  std::vector<Places> kinds() const {
    constexpr int kEdges = 2;
    std::vector<Places> kinds;
    std::map<std::string, size_t> known;
    for (uint32_t place = 0; place < replacements_.size(); place++) {
      const auto& [from, to] = replacements_[place];
      const std::string kind = std::to_string(from.output) + surroundings(graph_, graph_.id_of(from.node), kEdges);
      const auto [own, is_new] = known.try_emplace(kind, kinds.size());
      if (is_new) kinds.emplace_back();
      kinds[own->second].push_back(place);
    }
    return kinds;
  }

  static Places joined(const std::vector<Places>& parts) {
    Places all;
    for (const Places& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }

  // By what it changes of the nodes around it.
  bool is_dearer_around(uint32_t place) const {
    const auto& [from, to] = replacements_[place];
    if (!graph_.contains(to.node)) return false;
    Binding binding;
    binding.nodes = {graph_.id_of(from.node)};
    binding.variables = {to};
    const Part part = part_around(graph_, binding);
    const Value key{part.graph.node(part.binding.nodes[0]), from.output}, value = part.binding.variables[0];
    if (!part.graph.contains(value.node)) return false;
    const Graph after = replace_each(part.graph, {{key, value}});
    return costs_.estimate_part(after).time_ms > kRounding * costs_.estimate_part(part.graph).time_ms;
  }

  void take_among(const std::vector<Places>& kinds) {
    const Places all = joined(kinds);
    if (all.empty() || take(all)) return;
    if (kinds.size() == 1) return take_of_a_kind(all);
    const auto middle = kinds.begin() + static_cast<ptrdiff_t>(kinds.size() / 2);
    take_among({kinds.begin(), middle});
    take_among({middle, kinds.end()});
  }

  // Whether with these beside what is taken the graph is no dearer.
  bool is_not_dearer(const Places& places) {
    if (estimates_++ >= kMostEstimates) return false;
    Replacements some;
    for (const uint32_t place : joined({kept_, places})) some.push_back(replacements_[place]);
    return costs_.estimate(replace_each(graph_, some)).time_ms <= kRounding * now_ms_;
  }
  bool take(const Places& places) {
    if (!is_not_dearer(places)) return false;
    kept_ = joined({kept_, places});
    return true;
  }

  // Where all of them are dearer: none, where one in their middle is, or those of either half.
  void take_of_a_kind(const Places& dearer) {
    if (dearer.size() > 1 && is_not_dearer({dearer[dearer.size() / 2]})) take_halves(dearer);
  }
  void take_halves(const Places& dearer) {
    if (dearer.size() == 1) return;
    const auto middle = dearer.begin() + static_cast<ptrdiff_t>(dearer.size() / 2);
    for (const Places& half : {Places(dearer.begin(), middle), Places(middle, dearer.end())})
      if (!take(half)) take_halves(half);
  }

  static constexpr double kRounding = 1 + 1e-6;
  static constexpr int kMostEstimates = 24;  // of the whole graph; what is left then stays as it is
  const Graph& graph_;
  const Replacements& replacements_;
  CostOracle& costs_;
  const double now_ms_;
  int estimates_ = 0;
  Places kept_;
};

}  // namespace

std::vector<uint32_t> not_dearer(const Graph& graph, const Replacements& replacements, CostOracle& costs) {
  if (replacements.empty()) return {};
  Places kept = Choice(graph, replacements, costs).run();
  std::ranges::sort(kept);
  return kept;
}

}  // namespace gopt::optimizer
