#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "gopt/interpreter.h"
#include "gopt/wide_integers.h"
#include "passes/passes.h"

namespace gopt::optimizer {
namespace {

// A constant, or what is computed from small ones by few nodes: a mask, say.
std::optional<Tensor> known_tensor(const Value& value) {
  if (!is_computable(value.type().element)) return std::nullopt;
  if (value.node->is(OpKind::Constant)) return value.node->tensor;
  constexpr int64_t kMostElements = 1 << 18;
  constexpr size_t kMostNodes = 32;
  std::set<const Node*> seen;
  std::vector<const Node*> stack{value.node.get()};
  while (!stack.empty()) {
    const Node& node = *stack.back();
    stack.pop_back();
    if (!seen.insert(&node).second) continue;
    const auto is_small = [](const TensorType& type) {
      return type.has_static_shape() && element_count(type.static_shape()) <= kMostElements;
    };
    const bool is_cheap = node.is(OpKind::Constant) ||
                          (node.op != OpKind::Opaque && op_info(node.op).has(kElementwise)) ||
                          (node.op != OpKind::Opaque && op_info(node.op).has(kDataMovement));
    if (!is_cheap || seen.size() > kMostNodes || !std::ranges::all_of(node.outputs, is_small)) return std::nullopt;
    for (const Value& input : node.inputs)
      if (input) stack.push_back(input.node.get());
  }
  auto tensor = evaluate_constant(value);
  return tensor.ok() ? std::optional(*std::move(tensor)) : std::nullopt;
}

// The number that all elements of a known tensor are; nothing where they differ, or it is none.
std::optional<double> uniform_value(const Value& value) {
  const auto known = known_tensor(value);
  if (!known) return std::nullopt;
  const Tensor& tensor = *known;
  if (tensor.count() == 0 || has_wide_integers(tensor)) return std::nullopt;
  const auto at = [&](int64_t i) { return load_double(tensor.bytes().data(), tensor.type(), i); };
  for (int64_t i = 1; i < tensor.count(); i++)
    if (at(i) != at(0)) return std::nullopt;
  return at(0);
}

bool is_signed(ElementType type) {
  return type == ElementType::Int8 || type == ElementType::Int16 || type == ElementType::Int32 ||
         type == ElementType::Int64;
}

// What no value of a type is below, or above.
double bound_of(ElementType type, bool lower) {
  if (is_floating(type)) return lower ? -HUGE_VAL : HUGE_VAL;
  if (type == ElementType::Bool) return lower ? 0 : 1;
  const int digits = 8 * static_cast<int>(size_bytes(type)) - (is_signed(type) ? 1 : 0);
  if (lower) return is_signed(type) ? -std::ldexp(1, digits) : 0;
  return std::ldexp(1, digits) - 1;
}

// Without maxima and minima that no value of the type goes beyond: And(x, true), Clip by the type's own bounds.
Expr without_idle_bounds(const Expr& value, ElementType type) {
  const bool is_lower = value->kind == ExprKind::Maximum;
  if (!is_lower && value->kind != ExprKind::Minimum) return value;
  for (size_t k = 0; k < 2; k++) {
    const Expr &bound = value->args[k], &other = value->args[1 - k];
    if (bound->kind != ExprKind::Constant) continue;
    const double limit = bound_of(type, is_lower);
    if (is_lower ? bound->value <= limit : bound->value >= limit) return without_idle_bounds(other, type);
  }
  return value;
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
    if (node.inputs[i].node->is(OpKind::Constant)) inputs.back().data = &node.inputs[i].node->tensor;
  }
  const auto definition = define(node.op, inputs, node.attributes);
  if (!definition.ok() || definition->outputs.size() != 1) return false;
  std::vector<AtomId> axes;
  std::vector<Index> subscripts;
  for (const Index& extent : *node.outputs.front().shape) {
    if (extent == Index(1)) {  // where an input has one element, too, a broadcast reads its first
      subscripts.emplace_back(0);
      continue;
    }
    axes.push_back(fresh_symbol());
    subscripts.push_back(Index::from_atom(axes.back()));
  }
  const Expr value = without_idle_bounds(definition->outputs.front().at(subscripts), node.outputs.front().element);
  const Expr same = read(static_cast<int>(copied), subscripts), zero = constant(0);
  // Expressions keep zeros that are added: -0 + 0 is 0, which is as good.
  const bool copies = value == same || value == same + zero || value == zero + same || value == same - zero;
  for (AtomId axis : axes) release_symbol(axis);
  return copies;
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
