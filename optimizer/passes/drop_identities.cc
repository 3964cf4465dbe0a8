#include <algorithm>
#include <optional>
#include <set>

#include "passes/passes.h"

namespace gopt::optimizer {
namespace {

// The number that all elements of a constant are; nothing where they differ, or it is none.
std::optional<double> uniform_value(const Value& value) {
  if (!value.node->is(OpKind::Constant) || !is_computable(value.type().element)) return std::nullopt;
  const Tensor& tensor = value.node->tensor;
  if (tensor.count() == 0) return std::nullopt;
  const auto at = [&](int64_t i) { return load_double(tensor.bytes().data(), tensor.type(), i); };
  for (int64_t i = 1; i < tensor.count(); i++)
    if (at(i) != at(0)) return std::nullopt;
  return at(0);
}

// Whether the definition reads, at every subscript, the input of that number at the same subscript, where all others
// are constants of one number.
bool copies_by_definition(const Node& node, size_t copied) {
  std::vector<TensorExpr> inputs;
  for (size_t i = 0; i < node.inputs.size(); i++) {
    inputs.push_back(input_tensor(static_cast<int>(i), node.inputs[i].type()));
    if (i == copied) continue;
    const auto value = uniform_value(node.inputs[i]);
    if (!value) return false;
    inputs.back().at = [value](const std::vector<Index>&) { return constant(*value); };
    inputs.back().data = &node.inputs[i].node->tensor;
  }
  const auto definition = define(node.op, inputs, node.attributes);
  if (!definition.ok() || definition->outputs.size() != 1) return false;
  std::vector<AtomId> axes;
  std::vector<Index> subscripts;
  for (size_t axis = 0; axis < node.outputs.front().shape->size(); axis++) {
    axes.push_back(fresh_symbol());
    subscripts.push_back(Index::from_atom(axes.back()));
  }
  const Expr value = definition->outputs.front().at(subscripts);
  const Expr same = read(static_cast<int>(copied), subscripts), zero = constant(0);
  // Expressions keep zeros that are added: -0 + 0 is 0, which is as good.
  const bool copies = value == same || value == same + zero || value == zero + same || value == same - zero;
  for (AtomId axis : axes) release_symbol(axis);
  return copies;
}

bool is_signed(ElementType type) {
  return type == ElementType::Int8 || type == ElementType::Int16 || type == ElementType::Int32 ||
         type == ElementType::Int64;
}

// Whether every value of the narrow type is one of the wide type.
bool holds_all_of(ElementType wide, ElementType narrow) {
  const auto digits = [](ElementType type) -> int {  // of an integer that every smaller one can be told from
    switch (type) {
      case ElementType::Float64: return 53;
      case ElementType::Float32: return 24;
      case ElementType::Float16: return 11;
      case ElementType::BFloat16: return 8;
      case ElementType::Bool: return 1;
      default: return 8 * static_cast<int>(size_bytes(type)) - (is_signed(type) ? 1 : 0);
    }
  };
  if (!is_computable(wide) || !is_computable(narrow)) return false;
  if (is_floating(narrow)) {
    return wide == narrow || wide == ElementType::Float64 ||
           (wide == ElementType::Float32 && narrow != ElementType::Float64);
  }
  if (is_floating(wide)) return digits(wide) >= digits(narrow);
  return digits(wide) >= digits(narrow) && (is_signed(wide) || !is_signed(narrow));
}

// Of a Cast that takes back an exact Cast: what that was of.
std::optional<Value> value_before_casts(const Node& node) {
  if (!node.is(OpKind::Cast) || !node.inputs.front() || !node.inputs.front().node->is(OpKind::Cast))
    return std::nullopt;
  const Value between = node.inputs.front(), before = between.node->inputs.front();
  if (!before || !(before.type() == node.outputs.front())) return std::nullopt;
  return holds_all_of(between.type().element, before.type().element) ? std::optional(before) : std::nullopt;
}

bool has_name_of_its_own(const Value& value) {
  return value.node->is(OpKind::Input) || value.node->is(OpKind::Constant);
}

}  // namespace

bool is_copy(const Node& node) {
  if (node.op == OpKind::Opaque || node.inputs.size() != 1 || node.outputs.size() != 1 || !node.inputs.front())
    return false;
  const TensorType& type = node.outputs.front();
  if (node.is(OpKind::Identity)) return true;
  if (!type.shape || !(node.inputs.front().type() == type)) return false;
  switch (node.op) {
    // Row-major order and an equal shape leave each element where it was.
    case OpKind::Reshape:
    case OpKind::Flatten:
    case OpKind::Squeeze:
    case OpKind::Unsqueeze: return true;
    default: break;
  }
  const OpInfo& info = op_info(node.op);
  if (!info.has(kDataMovement) && !info.has(kElementwise)) return false;
  return copies_by_definition(node, 0);
}

std::optional<Value> copied_value(const Node& node) {
  if (is_copy(node)) return node.inputs.front();
  if (const auto before = value_before_casts(node)) return before;
  const bool is_elementwise = node.op != OpKind::Opaque && op_info(node.op).has(kElementwise);
  if (!is_elementwise || node.inputs.size() < 2 || node.outputs.size() != 1 || !node.outputs.front().shape)
    return std::nullopt;
  const auto is_there = [](const Value& input) { return static_cast<bool>(input); };
  if (!std::all_of(node.inputs.begin(), node.inputs.end(), is_there)) return std::nullopt;
  for (size_t copied = 0; copied < node.inputs.size(); copied++)
    if (node.inputs[copied].type() == node.outputs.front() && copies_by_definition(node, copied))
      return node.inputs[copied];
  return std::nullopt;
}

Replacements drop_identities(const Graph& graph) {
  // An output that would become an input, a constant or another output keeps its copy, which carries its name.
  std::set<Value> outputs;
  for (const GraphOutput& output : graph.outputs()) outputs.insert(output.value);
  Replacements replacements;
  for (const NodePtr& node : graph.nodes()) {
    const auto copied = copied_value(*node);
    if (!copied) continue;
    const Value copy{node, 0}, original = *copied;
    if (outputs.count(copy)) {
      if (has_name_of_its_own(original) || outputs.count(original)) continue;
      outputs.insert(original);
    }
    replacements.emplace_back(copy, original);
  }
  return replacements;
}

}  // namespace gopt::optimizer
