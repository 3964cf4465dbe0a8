#include "quantization_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

namespace gopt::driver {
namespace {

// Whether the value is computed by a node that is such.
template <class Is>
bool is_after(const Value& output, const Is& is) {
  std::set<const Node*> seen;
  std::vector<const Node*> stack{output.node.get()};
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node).second) continue;
    if (is(*node)) return true;
    for (const Value& input : node->inputs)
      if (input) stack.push_back(input.node.get());
  }
  return false;
}

// What rounds to this type: not what has it from the start, nor what moves it.
bool rounds_to(const Node& node, ElementType type) {
  if (node.is(OpKind::Input) || node.is(OpKind::Constant)) return false;
  if (node.op != OpKind::Opaque && op_info(node.op).has(kDataMovement)) return false;
  return std::ranges::any_of(node.outputs, [type](const TensorType& own) { return own.element == type; });
}

// Of floats: what several roundings to 16 bits add up to; where numbers are converted alone, one of them, which a
// difference in the last place of 32 bits turns over.
double rounding_before(const Value& output) {
  constexpr double kOfHalf = 1e-3, kOfBFloat16 = 8e-3;
  if (!is_floating(output.type().element)) return 0;
  double most = 0;
  for (const ElementType type : {ElementType::Float16, ElementType::BFloat16}) {
    if (is_after(output, [&](const Node& node) { return rounds_to(node, type) && !node.is(OpKind::Cast); }))
      most = std::max(most, rounding_tolerance(type));
    else if (is_after(output, [&](const Node& node) { return rounds_to(node, type); }))
      most = std::max(most, type == ElementType::Float16 ? kOfHalf : kOfBFloat16);
  }
  return most;
}

// Of integers one, of the floats that they stand for the largest scale; 0: it is something else.
double step_of(const Value& value) {
  const Node* node = value.node.get();
  while (node->op != OpKind::Opaque && op_info(node->op).has(kDataMovement)) node = node->inputs[0].node.get();
  if (node->is(OpKind::Quantize)) return 1;
  if (!node->is(OpKind::Dequantize) || !node->inputs[1].node->is(OpKind::Constant)) return 0;
  double largest = 0;
  for (const double scale : node->inputs[1].node->tensor.to_doubles()) largest = std::max(largest, std::fabs(scale));
  return largest * step_of(node->inputs[0]);
}

}  // namespace

bool is_quantized(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const NodePtr& node) { return node->is(OpKind::Quantize); });
}

Result<Graph> nudged(const Graph& graph) {
  constexpr double kRoundings = 1 + 1e-6;
  GraphBuilder builder;
  std::map<Value, Value> larger;
  for (const NodePtr& node : graph.nodes()) {
    if (!node->is(OpKind::Quantize) || !node->inputs[1].node->is(OpKind::Constant)) continue;
    const Value scale = node->inputs[1];
    const Tensor& own = scale.node->tensor;
    std::vector<double> values = own.to_doubles();
    for (double& value : values) value *= kRoundings;
    larger.try_emplace(scale, builder.constant(Tensor::from_values(own.type(), own.dims(), values)));
  }
  return replace_values(graph, larger);
}

Tolerance tolerance_of_output(const Value& output, Tolerance tolerance) {
  constexpr double kStepOf8Bits = 1.0 / 127;
  tolerance.relative = std::max(tolerance.relative, rounding_before(output));
  if (!is_after(output, [](const Node& node) { return node.is(OpKind::Quantize); })) return tolerance;
  tolerance.step = step_of(output);
  if (tolerance.step == 0) tolerance.relative = std::max(tolerance.relative, kStepOf8Bits);
  return tolerance;
}

}  // namespace gopt::driver
