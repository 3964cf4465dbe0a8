#include "wrong_kernel.h"

#include <map>

#include "gopt/interpreter.h"
#include "gopt/node_names.h"
#include "half_range.h"

namespace gopt::driver {
namespace {

std::string name_of_value(const Value& value) {
  const auto& names = value.node->output_names;
  const auto at = static_cast<size_t>(value.output);
  return at < names.size() && !names[at].empty() ? names[at] : name_of_node(*value.node);
}

}  // namespace

Result<std::optional<WrongKernel>> first_wrong_kernel(const Graph& graph, const Target& target, const CostSource& costs,
                                                      const std::map<std::string, Tensor>& inputs,
                                                      const Tolerance& tolerance) {
  PlannedGraph as_it_is(graph, target, costs);
  GOPT_ASSIGN_OR_RETURN(const Plan* own_plan, as_it_is.plan());
  PlannedGraph stored(with_stored_values(graph, *own_plan), target, costs);
  GOPT_ASSIGN_OR_RETURN(RunnableModel * code, stored.code());
  GOPT_ASSIGN_OR_RETURN(const std::vector<Tensor> made, code->run(inputs));
  GOPT_ASSIGN_OR_RETURN(const std::vector<Tensor> expected, interpret(stored.graph(), inputs));
  std::map<Value, size_t> number;
  for (size_t k = 0; k < made.size(); k++) number.emplace(stored.graph().outputs()[k].value, k);
  GOPT_ASSIGN_OR_RETURN(const Plan* plan, stored.plan());
  int right = 0;
  for (const Kernel& kernel : plan->kernels) {
    for (const Value& value : kernel.outputs) {
      const auto at = number.find(value);
      if (at == number.end()) continue;
      const Difference found = difference(name_of_value(value), expected[at->second], made[at->second], tolerance);
      if (!found.passed) return std::optional(WrongKernel{print_kernel(*plan, kernel), found, right});
    }
    right++;
  }
  return std::optional<WrongKernel>();
}

}  // namespace gopt::driver
