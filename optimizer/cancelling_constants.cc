#include "cancelling_constants.h"

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

bool cancels_constants(const Node& node) {
  if (node.op != OpKind::Add && node.op != OpKind::Sub) return false;
  if (!is_floating(node.outputs.front().element)) return false;
  const auto a = small_constant(node.inputs[0]), b = small_constant(node.inputs[1]);
  if (!a || !b) return false;
  auto sum = interpret_node(node, {*a, *b});
  // Broadcast terms are compared by their largest elements: what is refused here is only not rewritten.
  const double terms = std::min(largest(*a), largest(*b));
  if (!sum.ok() || terms == 0) return false;
  const std::vector<double> values = sum->front().to_doubles();
  return std::any_of(values.begin(), values.end(), [&](double value) { return std::fabs(value) < kFarBelow * terms; });
}

}  // namespace gopt::optimizer
