#include "derivation/equality_fold.h"

#include <algorithm>
#include <cmath>

#include "gopt/interpreter.h"

namespace gopt::optimizer {
namespace {

constexpr double kUnit = 64, kMost = 4096;

bool is_exact(double number) { return std::abs(number) < kMost && number * kUnit == std::nearbyint(number * kUnit); }

bool is_arithmetic(const Expr& expr) {
  switch (expr->kind) {
    case ExprKind::Constant: return is_exact(expr->value);
    case ExprKind::Read: return true;
    case ExprKind::Add:
    case ExprKind::Subtract:
    case ExprKind::Multiply:
    case ExprKind::Maximum:
    case ExprKind::Minimum: return std::all_of(expr->args.begin(), expr->args.end(), is_arithmetic);
    default: return false;
  }
}

// The value of an operator of scalars, where it is arithmetic and exact.
std::optional<Tensor> value_of(OpKind op, const std::vector<Tensor>& numbers, const Attributes& attributes) {
  std::vector<TensorExpr> inputs;
  for (size_t i = 0; i < numbers.size(); i++) {
    if (numbers[i].type() != ElementType::Float32 || !is_exact(numbers[i].to_doubles()[0])) return std::nullopt;
    inputs.push_back(input_tensor(static_cast<int>(i), numbers[i].tensor_type()));
  }
  const auto definition = define(op, inputs, attributes);
  if (!definition.ok() || definition->outputs.size() != 1 || !definition->outputs[0].shape.empty() ||
      !is_arithmetic(definition->outputs[0].at({})))
    return std::nullopt;
  GraphBuilder builder;
  std::vector<Value> constants;
  for (const Tensor& number : numbers) constants.push_back(builder.constant(number));
  const auto node = builder.add(op, constants, attributes);
  if (!node.ok()) return std::nullopt;
  const auto values = interpret_node(**node, numbers);
  if (!values.ok() || values->front().type() != ElementType::Float32 || !is_exact(values->front().to_doubles()[0]))
    return std::nullopt;
  return values->front();
}

// Joins the application with its value. Whether it did.
bool fold(EqualityGraph& graph, EqualityId id) {
  const EqualityNode node = graph.node(id);
  if (node.inputs.empty() || node.output_count != 1 || graph.class_of(id).number != kNoValue) return false;
  std::vector<EqualityId> constants;
  std::vector<Tensor> numbers;
  for (EqualityId input : node.inputs) {
    const EqualityId number = input == kNoValue ? kNoValue : graph.class_of(input).number;
    if (number == kNoValue || !graph.tensor(number).dims().empty()) return false;
    constants.push_back(number);
    numbers.push_back(graph.tensor(number));
  }
  const auto value = value_of(node.op, numbers, graph.attributes(id));
  if (!value) return false;
  const EqualityId result = graph.add_constant(*value);
  return graph.can_merge(id, result) && graph.merge(id, result, {kArithmetic, 0, {}, std::move(constants)});
}

}  // namespace

void fold_numbers(EqualityGraph& graph) {
  for (bool folded = true; folded;) {
    folded = false;
    for (EqualityId id = 0, end = static_cast<EqualityId>(graph.node_count()); id < end; id++)
      if (!graph.node(id).is_duplicate) folded = fold(graph, id) || folded;
    if (folded) graph.restore_congruence();
  }
}

}  // namespace gopt::optimizer
