#include "matching/cancelling_constants.h"

#include <algorithm>
#include <cmath>

#include "gopt/interpreter.h"

namespace gopt::optimizer {
namespace {

constexpr int64_t kMostElements = 4096;
constexpr int kDeepest = 4;
constexpr double kFarBelow = 1.0 / 256;

std::optional<Tensor> small_constant(const Value& value, int depth = 0) {
  if (!value || depth > kDeepest || value.node->is(OpKind::Input) || value.node->is(OpKind::Opaque))
    return std::nullopt;
  if (!value.type().has_static_shape() || element_count(value.type().static_shape()) > kMostElements)
    return std::nullopt;
  if (value.node->is(OpKind::Constant)) return value.node->tensor;
  std::vector<Tensor> inputs;
  for (const Value& input : value.node->inputs) {
    auto tensor = input ? small_constant(input, depth + 1) : Tensor();
    if (!tensor) return std::nullopt;
    inputs.push_back(*std::move(tensor));
  }
  auto outputs = interpret_node(*value.node, inputs);
  if (!outputs.ok()) return std::nullopt;
  return (*outputs)[static_cast<size_t>(value.output)];
}

double largest(const Tensor& tensor) {
  double most = 0;
  for (double value : tensor.to_doubles()) most = std::max(most, std::fabs(value));
  return most;
}

}  // namespace

namespace {

// Whether a result is as good as none: infinite, or below what the type keeps all digits of.
bool is_lost(double value, ElementType type) {
  const double smallest = type == ElementType::Float16 ? 0x1p-14 : type == ElementType::Float64 ? 0x1p-1022 : 0x1p-126;
  return !std::isfinite(value) || std::fabs(value) < smallest;
}

bool any_infinite(const Tensor& tensor) {
  const std::vector<double> values = tensor.to_doubles();
  return std::any_of(values.begin(), values.end(), [](double v) { return !std::isfinite(v); });
}
// Elements that are infinite although no element of the operands was.
bool overflows(const Tensor& a, const Tensor& b, const Tensor& result) {
  return !any_infinite(a) && !any_infinite(b) && any_infinite(result);
}

// Of a product or quotient: elements that are lost although no element of the operands was.
bool loses_product(const Tensor& a, const Tensor& b, const Tensor& result) {
  const auto any_lost = [](const Tensor& tensor) {
    const std::vector<double> values = tensor.to_doubles();
    return std::any_of(values.begin(), values.end(), [&](double v) { return is_lost(v, tensor.type()); });
  };
  return !any_lost(a) && !any_lost(b) && any_lost(result);
}

// Terms are compared by their largest elements: what is refused here is only not rewritten.
bool cancels(const Tensor& a, const Tensor& b, const Tensor& sum) {
  const double terms = std::min(largest(a), largest(b));
  const std::vector<double> values = sum.to_doubles();
  return terms > 0 &&
         std::any_of(values.begin(), values.end(), [&](double value) { return std::fabs(value) < kFarBelow * terms; });
}

}  // namespace

bool loses_constants(const Node& node) {
  const bool is_sum = node.op == OpKind::Add || node.op == OpKind::Sub, is_reciprocal = node.op == OpKind::Reciprocal;
  if (!is_sum && node.op != OpKind::Mul && node.op != OpKind::Div && !is_reciprocal) return false;
  if (!is_floating(node.outputs.front().element)) return false;
  const auto a = small_constant(node.inputs[0]), b = is_reciprocal ? a : small_constant(node.inputs[1]);
  if (!a || !b) return false;
  const auto result = interpret_node(node, is_reciprocal ? std::vector{*a} : std::vector{*a, *b});
  if (!result.ok()) return false;
  if (overflows(*a, *b, result->front())) return true;
  return is_sum ? cancels(*a, *b, result->front()) : loses_product(*a, *b, result->front());
}

}  // namespace gopt::optimizer
