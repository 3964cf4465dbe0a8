#include "half_range.h"

#include <cmath>

#include "gopt/interpreter.h"

namespace gopt::driver {
namespace {

constexpr double kLargestHalf = 65504, kMargin = 2;

bool is_beyond(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.count(); i++) {
    const double size = std::abs(load_double(tensor.bytes().data(), tensor.type(), i));
    if (std::isfinite(size) && size * kMargin > kLargestHalf) return true;
  }
  return false;
}

}  // namespace

Graph with_stored_values(const Graph& graph, const Plan& plan) {
  std::vector<GraphOutput> outputs = graph.outputs();
  std::set<Value> given;
  for (const GraphOutput& output : outputs) given.insert(output.value);
  for (const Kernel& kernel : plan.kernels)
    for (const Value& value : kernel.outputs)
      if (!value.node->is(OpKind::Input) && given.insert(value).second)
        outputs.push_back({"stored " + std::to_string(outputs.size()), value});
  return Graph(graph.inputs(), std::move(outputs), graph.metadata());
}

Result<std::set<ValueKey>> values_beyond_half(PlannedGraph& planned, const std::map<std::string, Tensor>& inputs,
                                              bool interprets) {
  GOPT_ASSIGN_OR_RETURN(const Plan* plan, planned.plan());
  std::set<Value> narrowed;
  std::set<ValueKey> found;
  for (const Buffer& buffer : plan->buffers) {
    if (buffer.element != ElementType::Float16 || buffer.value.type().element != ElementType::Float32) continue;
    if (buffer.place != BufferPlace::Weight) {
      narrowed.insert(buffer.value);
      continue;
    }
    GOPT_ASSIGN_OR_RETURN(const Tensor weight, evaluate_constant(buffer.value));
    if (is_beyond(weight)) found.insert(key_of(buffer.value));
  }
  const CostSource analytic;
  PlannedGraph stored(with_stored_values(planned.graph(), *plan), {TargetKind::Cpu}, analytic);
  std::vector<Tensor> made;
  if (interprets) {
    GOPT_ASSIGN_OR_RETURN(made, interpret(stored.graph(), inputs));
  } else {
    GOPT_ASSIGN_OR_RETURN(RunnableModel * code, stored.code());
    GOPT_ASSIGN_OR_RETURN(made, code->run(inputs));
  }
  for (size_t k = 0; k < made.size(); k++) {
    const Value& value = stored.graph().outputs()[k].value;
    if (narrowed.contains(value) && is_beyond(made[k])) found.insert(key_of(value));
  }
  return found;
}

}  // namespace gopt::driver
