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

// Of floats that are computed from some of this type.
bool is_after_type(const Value& output, ElementType type) {
  return is_floating(output.type().element) && is_after(output, [type](const Node& node) {
           return std::ranges::any_of(node.outputs, [type](const TensorType& own) { return own.element == type; });
         });
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
  for (const ElementType type : {ElementType::Float16, ElementType::BFloat16})
    if (is_after_type(output, type)) tolerance.relative = std::max(tolerance.relative, rounding_tolerance(type));
  if (!is_after(output, [](const Node& node) { return node.is(OpKind::Quantize); })) return tolerance;
  tolerance.step = step_of(output);
  if (tolerance.step == 0) tolerance.relative = std::max(tolerance.relative, kStepOf8Bits);
  return tolerance;
}

}  // namespace gopt::driver
