#include "gopt/computed_weights.h"

#include <algorithm>
#include <set>

#include "gopt/interpreter.h"
#include "gopt/node_operations.h"

namespace gopt {
namespace {

bool is_computable_constant(const TensorType& type) { return type.has_static_shape() && is_computable(type.element); }

int64_t bytes_of(const TensorType& type) {
  return element_count(type.static_shape()) * static_cast<int64_t>(size_bytes(type.element));
}

// What a value is made of: operations, and bytes of distinct initializers.
struct Making {
  double operations = 0;
  int64_t bytes = 0;
};
std::optional<Making> making_of(const NodePtr& node) {
  Making making;
  std::set<const Node*> seen;
  std::vector<const Node*> open{node.get()};
  while (!open.empty()) {
    const Node& own = *open.back();
    open.pop_back();
    if (!seen.insert(&own).second) continue;
    if (own.is(OpKind::Opaque) || !std::ranges::all_of(own.outputs, is_computable_constant)) return std::nullopt;
    if (own.is(OpKind::Constant))
      making.bytes += bytes_of(own.outputs[0]);
    else
      making.operations += scalar_operations(own);
    for (const Value& input : own.inputs)
      if (input) open.push_back(input.node.get());
  }
  return making;
}

}  // namespace

Graph with_computed_weights(const Graph& graph, const Graph& original) {
  double operations_left = 5e9;  // some seconds
  std::set<std::string> authors;
  for (const NodePtr& node : original.nodes()) authors.insert(to_string(node->hash));
  const auto is_weight = [&](const NodePtr& node) {
    return !node->is(OpKind::Constant) && graph.depends_on_weights_only(graph.id_of(node));
  };
  std::set<Value> wanted;  // by nodes that run
  for (const NodePtr& node : graph.nodes())
    if (!graph.depends_on_weights_only(graph.id_of(node)))
      for (const Value& input : node->inputs)
        if (input && is_weight(input.node)) wanted.insert(input);
  GraphBuilder builder;
  std::map<Value, Value> computed;
  for (const Value& value : wanted) {
    const auto making = making_of(value.node);
    if (!making || authors.contains(to_string(value.node->hash))) continue;
    if (bytes_of(value.type()) > making->bytes || making->operations > operations_left) continue;
    operations_left -= making->operations;
    const auto tensor = evaluate_constant(value);
    if (!tensor.ok()) continue;
    const auto& names = value.node->output_names;
    const auto output = static_cast<size_t>(value.output);
    computed[value] = builder.constant(*tensor, output < names.size() ? names[output] : "");
  }
  auto folded = replace_values(graph, computed);
  return folded.ok() ? *std::move(folded) : graph;
}

}  // namespace gopt
