#include "graph_runner.h"

#include "gopt/interpreter.h"

namespace gopt::driver {

double operations_of(const Graph& graph, const Target& target) {
  return plan_cost_oracle(target, CostSource().make())->estimate(graph).operations;
}

Result<std::vector<Tensor>> GraphRunner::run(const std::map<std::string, Tensor>& inputs) const {
  return code ? code->run(inputs) : interpret(graph, inputs);
}

Result<GraphRunner> runner_for(PlannedGraph& planned, const std::string& engine) {
  GraphRunner runner{planned.graph()};
  if (engine != kInterpreter) {
    GOPT_ASSIGN_OR_RETURN(runner.code, engine == kCuda ? planned.code_for_target() : planned.code());
  }
  return runner;
}

}  // namespace gopt::driver
