#include "gopt/excerpt.h"

namespace gopt {
namespace {

class ExcerptMaker {
 public:
  ExcerptMaker(const Graph& graph, const std::set<NodeId>& chosen) : graph_(graph), chosen_(chosen) {}

  Excerpt run() {
    for (NodeId id : chosen_) copy(graph_.node(id));
    add_outputs();
    excerpt_.graph = builder_.build();
    return std::move(excerpt_);
  }

 private:
  bool is_weight(const NodePtr& node) const { return graph_.depends_on_weights_only(graph_.id_of(node)); }

  // The value in the excerpt: of a chosen node, a weight as it is, or an input.
  Value mapped(const Value& value) {
    if (const auto it = excerpt_.copies.find(value.node); it != excerpt_.copies.end())
      return {it->second, value.output};
    if (is_weight(value.node)) return value;
    const auto [it, is_new] = inputs_.try_emplace(value);
    if (is_new) {
      it->second = builder_.input("part_input_" + std::to_string(inputs_.size()), value.type());
      excerpt_.inputs.push_back(value);
    }
    return it->second;
  }

  void copy(const NodePtr& node) {
    if (is_weight(node)) return;
    if (node->is(OpKind::Input)) {
      excerpt_.copies[node] = mapped({node, 0}).node;
      return;
    }
    std::vector<Value> inputs;
    for (const Value& input : node->inputs) inputs.push_back(input ? mapped(input) : input);
    excerpt_.copies[node] = builder_.copy(*node, std::move(inputs));
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
    for (NodeId id : chosen_)
      for (int k = 0; k < static_cast<int>(graph_.node(id)->outputs.size()); k++)
        if (const Value value{graph_.node(id), k}; used.contains(value)) {
          builder_.output("part_output_" + std::to_string(excerpt_.outputs.size()), mapped(value));
          excerpt_.outputs.push_back(value);
        }
  }

  const Graph& graph_;
  const std::set<NodeId>& chosen_;  // in the graph's order: each after what it uses
  std::map<Value, Value> inputs_;
  GraphBuilder builder_;
  Excerpt excerpt_;
};

// Nodes of a replacement over the whole's values; what depends on weights alone is taken as it is.
class Splicer {
 public:
  explicit Splicer(GraphBuilder& builder) : builder_(builder) {}

  // Values of `graph` as they were built.
  ValueMap splice(const Excerpt& excerpt, const Graph& graph, std::map<Value, Value>& replacements) {
    made_.clear();
    for (size_t k = 0; k < excerpt.inputs.size(); k++) made_[graph.inputs()[k]] = excerpt.inputs[k];
    for (size_t k = 0; k < graph.nodes().size(); k++)
      if (!graph.depends_on_weights_only(NodeId{static_cast<uint32_t>(k)})) copy(graph.nodes()[k]);
    for (size_t k = 0; k < excerpt.outputs.size(); k++)
      replacements[excerpt.outputs[k]] = mapped(graph.outputs()[k].value);
    return std::move(made_);
  }

 private:
  Value mapped(const Value& value) const {
    const auto it = made_.find(value);
    return it == made_.end() ? value : it->second;
  }
  void copy(const NodePtr& node) {
    if (node->is(OpKind::Input)) return;
    std::vector<Value> inputs;
    for (const Value& input : node->inputs) inputs.push_back(input ? mapped(input) : input);
    const NodePtr made = builder_.copy(*node, std::move(inputs));
    for (int k = 0; k < static_cast<int>(node->outputs.size()); k++) made_[Value{node, k}] = {made, k};
  }

  GraphBuilder& builder_;
  ValueMap made_;
};

}  // namespace

Value Excerpt::of(const Value& value) const {
  if (const auto it = copies.find(value.node); it != copies.end()) return {it->second, value.output};
  for (size_t k = 0; k < inputs.size(); k++)
    if (inputs[k] == value) return graph.inputs()[k];
  return value;
}

Excerpt excerpt_of(const Graph& graph, const std::set<NodeId>& chosen) { return ExcerptMaker(graph, chosen).run(); }

Result<Replaced> with_replaced(const Graph& graph, const std::vector<Replacement>& replacements) {
  GraphBuilder builder;
  builder.adopt(graph);
  Splicer splicer(builder);
  std::map<Value, Value> values;
  Replaced replaced;
  for (const Replacement& r : replacements) replaced.built.push_back(splicer.splice(*r.excerpt, *r.graph, values));
  GOPT_ASSIGN_OR_RETURN(replaced.graph, replace_values(graph, values, &replaced.became));
  return replaced;
}

}  // namespace gopt
