#include <algorithm>

#include "gopt/interpreter.h"
#include "passes/passes.h"

namespace gopt::optimizer {
namespace {

constexpr int64_t kMaxFoldedBytes = 4096;
constexpr int64_t kMaxReadBytes = 1 << 20;

int64_t bytes_of(const TensorType& type) {
  if (!type.has_static_shape() || !is_computable(type.element)) return kMaxReadBytes + 1;
  return element_count(type.static_shape()) * static_cast<int64_t>(size_bytes(type.element));
}

bool has_small_types(const Node& node) {
  const auto is_small = [](const TensorType& type) { return bytes_of(type) <= kMaxFoldedBytes; };
  const auto is_readable = [](const Value& input) { return !input || bytes_of(input.type()) <= kMaxReadBytes; };
  return std::all_of(node.outputs.begin(), node.outputs.end(), is_small) &&
         std::all_of(node.inputs.begin(), node.inputs.end(), is_readable);
}

// Values of a node that reads no element of its input: any input of that type will do.
Result<std::vector<Tensor>> evaluate_shape_only(const Node& node) {
  std::vector<Tensor> inputs;
  for (const Value& input : node.inputs) {
    const TensorType& type = input.type();
    std::vector<std::byte> zeros(static_cast<size_t>(bytes_of(type)));
    inputs.push_back(Tensor::from_bytes(type.element, type.static_shape(), std::move(zeros)));
  }
  return interpret_node(node, inputs);
}

Result<std::vector<Tensor>> evaluate(const NodePtr& node) {
  if (op_info(node->op).has(kShapeOnly)) return evaluate_shape_only(*node);
  std::vector<Tensor> values;
  for (size_t output = 0; output < node->outputs.size(); output++) {
    GOPT_ASSIGN_OR_RETURN(Tensor tensor, evaluate_constant({node, static_cast<int>(output)}));
    values.push_back(std::move(tensor));
  }
  return values;
}

bool is_of_8_bits(ElementType type) { return type == ElementType::UInt8 || type == ElementType::Int8; }

// Weights of integers stay what they are: products are computed on them.
bool is_of_integers(const Graph& graph, const NodePtr& node) {
  if (element_count(node->outputs[0].static_shape()) <= 1) return false;
  if (node->is(OpKind::Dequantize)) return true;
  if (!node->is(OpKind::Cast) || !is_of_8_bits(node->inputs[0].type().element)) return false;
  const std::vector<NodeId>& users = graph.users()[static_cast<uint32_t>(graph.id_of(node))];
  return std::ranges::any_of(users, [&](NodeId id) { return graph.node(id)->is(OpKind::MatMul); });
}

bool is_foldable(const Graph& graph, const NodePtr& node) {
  if (node->is(OpKind::Input) || node->is(OpKind::Constant) || node->is(OpKind::Opaque)) return false;
  if (!op_info(node->op).has(kShapeOnly) && !graph.depends_on_weights_only(graph.id_of(node))) return false;
  return has_small_types(*node) && !is_of_integers(graph, node);
}

}  // namespace

Replacements fold_constants(const Graph& graph) {
  GraphBuilder builder;
  Replacements replacements;
  for (const NodePtr& node : graph.nodes()) {
    if (!is_foldable(graph, node)) continue;
    const auto values = evaluate(node);
    if (!values.ok()) continue;  // what is wrong shows where it runs
    for (size_t output = 0; output < values->size(); output++) {
      const std::string name = output < node->output_names.size() ? node->output_names[output] : "";
      replacements.emplace_back(Value{node, static_cast<int>(output)}, builder.constant((*values)[output], name));
    }
  }
  return replacements;
}

}  // namespace gopt::optimizer
