#include "node_work.h"

#include <algorithm>
#include <functional>
#include <span>
#include <unordered_map>

#include "access.h"
#include "gopt/node_operations.h"
#include "recurrences.h"
#include "row_functions.h"

namespace gopt::planner {
namespace {

// Definitions look at numbers that an operator is told: the exponent of Pow, the ends of Range.
const Tensor* number_of(const Value& value) {
  if (!value || !value.node->is(OpKind::Constant)) return nullptr;
  const Tensor& tensor = value.node->tensor;
  return tensor.count() == 1 && is_computable(tensor.type()) ? &tensor : nullptr;
}

std::vector<TensorExpr> input_tensors(const Node& node) {
  std::vector<TensorExpr> inputs;
  for (size_t k = 0; k < node.inputs.size(); k++) {
    const Value& v = node.inputs[k];
    const bool has_shape = v && v.type().shape;
    inputs.push_back(has_shape ? input_tensor(static_cast<int>(k), v.type()) : TensorExpr{});
    inputs.back().data = number_of(v);
  }
  return inputs;
}

NodeWork compute(const Node& node) {
  NodeWork work;
  work.is_index.resize(node.inputs.size());
  const std::vector<TensorExpr> inputs = input_tensors(node);
  const auto definition = define(node.op, inputs, node.attributes, static_cast<int>(node.outputs.size()));
  if (!definition.ok()) return work;
  std::vector<ElementType> types;
  for (const TensorExpr& input : inputs) types.push_back(input.element);
  work.follows_layout = !definition->outputs.empty();
  // A definition may have more outputs than the node asks for.
  const size_t outputs = std::min(node.outputs.size(), definition->outputs.size());
  for (const TensorExpr& output : std::span(definition->outputs).first(outputs)) {
    const Element element = element_of(output);
    const bool moves = only_moves(element.value);
    if (!moves) work.operations += estimate_work(output).operations;
    work.reduces = work.reduces || element.value->height > 0;
    if (work.reads.empty() && !moves) work.operations_an_element = operations_outside_reductions(element);
    work.reads.push_back(count_reads(output, types));
    const std::vector<bool> is_index = index_operands(element.value, inputs.size());
    std::transform(is_index.begin(), is_index.end(), work.is_index.begin(), work.is_index.begin(), std::logical_or<>());
    work.follows_layout = work.follows_layout && follows_layout(element, inputs);
    const bool is_alone = outputs == 1 && !inputs.empty() && inputs[0].at;
    work.keeps_order = is_alone && inputs[0].element == output.element && keeps_order(element, inputs[0]);
    const bool is_moved = element.value->kind == ExprKind::Read && element.value->input == 0;
    work.moved_from.push_back(is_moved ? element.value->subscripts : std::vector<Index>());
  }
  return work;
}

// All that compute() looks at.
Hash128 form_of(const Node& node) {
  std::string text = op_info(node.op).name + " " + std::to_string(node.outputs.size());
  for (const auto& [name, value] : node.attributes) text += " " + name + "=" + to_string(value);
  for (const Value& input : node.inputs) {
    text += ";";
    if (!input) continue;
    text += to_string(input.type());
    if (const Tensor* number = number_of(input)) text += " " + to_string(AttributeValue(*number));
  }
  return hash_bytes(text);
}

}  // namespace

const NodeWork& work_of(const Node& node) {
  static const NodeWork none;
  if (node.is(OpKind::Input) || node.is(OpKind::Constant) || node.is(OpKind::Opaque)) return none;
  thread_local std::unordered_map<Hash128, const NodeWork*, HashOfHash128> by_node;
  thread_local std::unordered_map<Hash128, NodeWork, HashOfHash128> by_form;
  const NodeWork*& known = by_node[node.hash];
  if (!known) {
    const auto [form, is_new] = by_form.try_emplace(form_of(node));
    if (is_new) form->second = compute(node);
    known = &form->second;
  }
  return *known;
}

}  // namespace gopt::planner

namespace gopt {

double scalar_operations(const Node& node) {
  if (node.is_recurrence()) return planner::recurrence_operations(node);
  if (node.is_row_function()) return planner::row_function_operations(node);
  return planner::work_of(node).operations;
}

}  // namespace gopt
