#include "matching/rewrite.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "gopt/node_names.h"
#include "gopt/portable.h"
#include "matching/cancelling_constants.h"
#include "matching/elements.h"

namespace gopt::optimizer {
namespace {

AttributeValue bound_value(AttributeValue value, const Binding& binding) {
  if (auto* variable = std::get_if<FloatVariable>(&value)) return binding.numbers.at(variable->name);
  const Substitution& symbols = binding.symbols;
  if (auto* index = std::get_if<Index>(&value)) *index = substitute(*index, symbols);
  if (auto* list = std::get_if<std::vector<Index>>(&value))
    for (Index& index : *list) index = substitute(index, symbols);
  return value;
}

std::string output_name(const Value& value) {
  const auto& names = value.node->output_names;
  return static_cast<size_t>(value.output) < names.size() ? names[value.output] : std::string();
}

// Whether the value is over these symbols. Others are extents that only some node of the model knows, which another
// rewrite may remove.
bool is_over(const AttributeValue& value, const std::set<AtomId>& symbols) {
  std::set<AtomId> used;
  collect_symbols(value, used);
  return std::includes(symbols.begin(), symbols.end(), used.begin(), used.end());
}

// Builds the right side; what replaces a root inherits its names.
class Instantiator {
 public:
  // Nodes that `builder` has are taken, not made again.
  Instantiator(GraphBuilder& builder, const Binding& binding, const std::vector<Value>& roots,
               const std::set<AtomId>& symbols)
      : builder_(builder),
        binding_(binding),
        symbols_(symbols),
        side_(binding.pattern->right),
        made_(side_.nodes.size()) {
    for (size_t i = 0; i < roots.size(); i++)
      if (side_.outputs[i].node >= 0) roots_of_[side_.outputs[i].node].emplace_back(side_.outputs[i].output, roots[i]);
  }

  Result<std::vector<Value>> build() {
    for (size_t i = 0; i < side_.nodes.size(); i++) GOPT_RETURN_IF_ERROR(add(i));
    std::vector<Value> outputs;
    for (const PatternValue& output : side_.outputs) outputs.push_back(find(output));
    return outputs;
  }
  std::vector<NodePtr> made() const {
    std::vector<NodePtr> nodes = made_;
    for (const PatternValue& output : side_.outputs)
      if (output.variable >= 0) nodes.push_back(binding_.variables[output.variable].node);
    return nodes;
  }

 private:
  Value find(const PatternValue& value) const {
    if (value.variable >= 0) return binding_.variables[value.variable];
    if (value.node >= 0) return {made_[value.node], value.output};
    return {};
  }

  Status add(size_t at) {
    const PatternNode& node = side_.nodes[at];
    if (node.op == OpKind::Constant) {
      made_[at] = builder_.constant(with_element(node.tensor, binding_.floating)).node;
      return Unit{};
    }
    std::vector<Value> inputs;
    for (const PatternValue& input : node.inputs) inputs.push_back(find(input));
    Attributes attributes;
    for (const auto& [name, value] : node.attributes) {
      AttributeValue bound = bound_value(value, binding_);
      if (!is_over(bound, symbols_)) return Error{"attribute " + name + " would need an extent that no input has"};
      attributes.emplace(name, std::move(bound));
    }
    std::string name;
    std::vector<std::string> output_names(node.outputs.size());
    if (const auto roots = roots_of_.find(static_cast<int>(at)); roots != roots_of_.end()) {
      name = roots->second.front().second.node->name;
      builder_.annotate(roots->second.front().second.node->annotations);
      for (const auto& [output, root] : roots->second) output_names[output] = output_name(root);
    }
    auto made = builder_.add(node.op, std::move(inputs), std::move(attributes), static_cast<int>(node.outputs.size()),
                             name, output_names);
    builder_.annotate("");
    GOPT_ASSIGN_OR_RETURN(made_[at], std::move(made));
    if (binding_.pattern->keeps_constants && loses_constants(*made_[at]))
      return Error{"constants would cancel, which may have been there to round, or overflow or vanish"};
    return Unit{};
  }

  GraphBuilder& builder_;
  const Binding& binding_;
  const std::set<AtomId>& symbols_;
  const PatternSide& side_;
  std::vector<NodePtr> made_;
  std::map<int, std::vector<std::pair<int, Value>>> roots_of_;
};

struct BuiltSide {
  std::map<Value, Value> replacements;  // of the roots
  std::vector<NodePtr> made;
};
// That a file of the result is run by what ran the file that was read.
Status must_run(const Graph& graph, const Binding& binding, const std::vector<NodePtr>& made) {
  for (const NodePtr& node : made) {
    const auto why = node ? why_refused_by_runtimes(*node) : std::nullopt;
    const bool was_refused =
        why && std::ranges::any_of(binding.nodes, [&](NodeId id) {
          return static_cast<uint32_t>(id) < graph.nodes().size() && why_refused_by_runtimes(*graph.node(id));
        });
    if (why && !was_refused) return Error{std::string(op_info(node->op).name) + " is refused by ONNX Runtime: " + *why};
  }
  return Unit{};
}

// The right side of one binding. Errors: another type than a root's.
Result<BuiltSide> build_side(GraphBuilder& builder, const Graph& graph, const Binding& binding,
                             const std::set<AtomId>& symbols) {
  std::vector<Value> roots;
  for (size_t i = 0; i < binding.pattern->left.outputs.size(); i++) roots.push_back(binding.root(graph, i));
  Instantiator instantiator(builder, binding, roots, symbols);
  GOPT_ASSIGN_OR_RETURN(const std::vector<Value> values, instantiator.build());
  GOPT_RETURN_IF_ERROR(must_run(graph, binding, instantiator.made()));
  BuiltSide side{{}, instantiator.made()};
  for (size_t i = 0; i < roots.size(); i++) {
    if (!(values[i].type() == roots[i].type()))
      return Error{fmt::format("output {} would be {} in place of {}", i, to_string(values[i].type()),
                               to_string(roots[i].type()))};
    side.replacements[roots[i]] = values[i];
  }
  return side;
}

// Marks the binding's nodes as taken, unless one of them already is. Constants are shared.
bool take_nodes(const Graph& graph, const Binding& binding, std::set<NodeId>& taken) {
  const auto is_taken = [&](NodeId id) { return taken.count(id) > 0; };
  if (std::any_of(binding.nodes.begin(), binding.nodes.end(), is_taken)) return false;
  for (NodeId id : binding.nodes)
    if (!graph.node(id)->is(OpKind::Constant)) taken.insert(id);
  return true;
}

}  // namespace

Result<Rewritten> apply_bindings(const Graph& graph, const std::vector<Binding>& bindings) {
  Rewritten rewritten;
  GraphBuilder builder;
  builder.set_broadcast_unknown(true);
  builder.adopt(graph);
  std::map<Value, Value> replacements;
  std::set<NodeId> taken;
  const std::set<AtomId> symbols = input_symbols(graph);
  for (const Binding& binding : bindings) {
    if (!take_nodes(graph, binding, taken)) continue;
    auto side = build_side(builder, graph, binding, symbols);
    if (!side.ok()) continue;
    replacements.insert(side->replacements.begin(), side->replacements.end());
    rewritten.applied.push_back(&binding);
    rewritten.made.push_back(std::move(side->made));
  }
  GOPT_ASSIGN_OR_RETURN(rewritten.graph, replace_values(graph, replacements, &rewritten.became));
  return rewritten;
}

std::vector<NodePtr> matched_nodes(const Graph& graph, const Binding& binding) {
  std::vector<NodePtr> nodes;
  for (NodeId id : binding.nodes)
    if (!graph.node(id)->is(OpKind::Constant)) nodes.push_back(graph.node(id));
  return nodes;
}

std::vector<std::string> matched_names(const Graph& graph, const Binding& binding) {
  std::vector<std::string> names;
  for (const NodePtr& node : matched_nodes(graph, binding)) names.push_back(name_of_node(*node));
  return names;
}

}  // namespace gopt::optimizer
