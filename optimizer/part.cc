#include "part.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace gopt::optimizer {
namespace {

// How far a plan looks around a node: a library kernel's epilogues below it, what is inlined into it above.
constexpr int kAbove = 3, kBelow = 4;
constexpr size_t kMostNodes = 96;

class PartMaker {
 public:
  PartMaker(const Graph& graph, const Binding& binding) : graph_(graph), binding_(binding) {}

  Part run() {
    choose_nodes();
    Part part;
    for (NodeId id : chosen_) copy(graph_.node(id));
    add_outputs();
    part.graph = builder_.build();
    part.binding = binding_;
    for (NodeId& id : part.binding.nodes) id = part.graph.id_of(inside(graph_.node(id)));
    for (Value& variable : part.binding.variables)
      if (variable) variable = mapped(variable);
    return part;
  }

 private:
  bool is_weight(NodeId id) const { return graph_.depends_on_weights_only(id); }

  // In breadth from the match, ancestors and descendants apart.
  void choose_nodes() {
    std::set<NodeId> matched;
    for (NodeId id : binding_.nodes) matched.insert(id);
    chosen_ = matched;
    std::set<NodeId> front = matched;
    for (int step = 0; step < kAbove; step++) {
      std::set<NodeId> next;
      for (NodeId id : front)
        for (const Value& input : graph_.node(id)->inputs)
          if (input) take(graph_.id_of(input.node), next);
      front = std::move(next);
    }
    front = matched;
    for (int step = 0; step < kBelow; step++) {
      std::set<NodeId> next;
      for (NodeId id : front)
        for (NodeId user : graph_.users()[static_cast<uint32_t>(id)]) take(user, next);
      front = std::move(next);
    }
  }
  void take(NodeId id, std::set<NodeId>& next) {
    if (is_weight(id) || graph_.node(id)->is(OpKind::Input) || chosen_.size() >= kMostNodes) return;
    if (chosen_.insert(id).second) next.insert(id);
  }

  bool is_inside(const NodePtr& node) const { return chosen_.contains(graph_.id_of(node)); }

  // The value in the part: of a chosen node, a weight as it is, or an input.
  Value mapped(const Value& value) {
    if (const auto it = copies_.find(value.node.get()); it != copies_.end()) return {it->second, value.output};
    const NodeId id = graph_.id_of(value.node);
    if (is_weight(id)) return value;
    const auto [it, is_new] = inputs_.try_emplace(value);
    if (is_new) it->second = builder_.input("part_input_" + std::to_string(inputs_.size()), value.type());
    return it->second;
  }
  NodePtr inside(const NodePtr& node) const {
    const auto it = copies_.find(node.get());
    return it == copies_.end() ? node : it->second;
  }

  void copy(const NodePtr& node) {
    if (is_weight(graph_.id_of(node))) return;
    if (node->is(OpKind::Input)) {
      copies_[node.get()] = mapped({node, 0}).node;
      return;
    }
    std::vector<Value> inputs;
    for (const Value& input : node->inputs) inputs.push_back(input ? mapped(input) : input);
    copies_[node.get()] = builder_.copy(*node, std::move(inputs));
  }

  // Values that the rest of the graph uses, and graph outputs.
  void add_outputs() {
    std::set<Value> used;
    for (const GraphOutput& output : graph_.outputs()) used.insert(output.value);
    for (NodeId id : chosen_) {
      const NodePtr& node = graph_.node(id);
      for (NodeId user : graph_.users()[static_cast<uint32_t>(id)])
        if (!chosen_.contains(user))
          for (const Value& input : graph_.node(user)->inputs)
            if (input && input.node == node) used.insert(input);
    }
    int count = 0;
    for (NodeId id : chosen_)
      for (int k = 0; k < static_cast<int>(graph_.node(id)->outputs.size()); k++)
        if (const Value value{graph_.node(id), k}; used.contains(value))
          builder_.output("part_output_" + std::to_string(count++), mapped(value));
  }

  const Graph& graph_;
  const Binding& binding_;
  std::set<NodeId> chosen_;  // in the graph's order: each after what it uses
  std::unordered_map<const Node*, NodePtr> copies_;
  std::map<Value, Value> inputs_;
  GraphBuilder builder_;
};

}  // namespace

Part part_around(const Graph& graph, const Binding& binding) { return PartMaker(graph, binding).run(); }

}  // namespace gopt::optimizer
