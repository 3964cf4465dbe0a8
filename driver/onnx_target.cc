#include "onnx_target.h"

#include <algorithm>
#include <set>

#include "machine_speed.h"

namespace gopt::driver {

std::unique_ptr<CostOracle> make_oracle(const Target& target, const CostSource& costs, double unknown_factor) {
  if (target.kind == TargetKind::Onnx) return runtime_cost_oracle(machine_roofline());
  return plan_cost_oracle(target, costs.make(unknown_factor));
}

bool pays(const Target& target, const Cost& with, const Cost& without) {
  constexpr double kNextToNothing = 0.005, kClear = 0.02;
  const double gain = without.time_ms / with.time_ms - 1;
  if (target.kind == TargetKind::Onnx) {
    if (with.kernels > without.kernels) return gain > kClear;
    if (with.kernels < without.kernels) return gain >= 0;
  }
  return gain > kNextToNothing || with.operations < without.operations;
}

namespace {

bool is_beyond(const RewriteRule& rule, int64_t opset) {
  std::set<OpKind> known;
  for (const NodePtr& node : rule.left.nodes()) known.insert(node->op);
  std::set<const Node*> of_activations;
  for (size_t k = 0; k < rule.variables.size(); k++)
    if (rule.variables[k].kind == VariableKind::Activation) of_activations.insert(rule.right.inputs()[k].node.get());
  for (const NodePtr& node : rule.right.nodes()) {
    const auto is_of_activation = [&](const Value& input) {
      return input && of_activations.contains(input.node.get());
    };
    if (std::none_of(node->inputs.begin(), node->inputs.end(), is_of_activation)) continue;
    of_activations.insert(node.get());
    if (!known.contains(node->op) && op_info(node->op).since_opset > opset) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> rules_beyond_opset(const Graph& graph, const std::vector<RewriteRule>& rules) {
  const auto opset = graph.metadata().opsets.find("");
  std::vector<std::string> names;
  if (opset == graph.metadata().opsets.end()) return names;
  for (const RewriteRule& rule : rules)
    if (is_beyond(rule, opset->second)) names.push_back(rule.name);
  return names;
}

Status choose_onnx(const Graph& graph, const std::vector<RewriteRule>& rules, const DriverOptions& options,
                   Outcome& outcome) {
  const bool is_asked = options.wants_code || options.timer;  // else the target was chosen for the file
  if (!options.wants_onnx || !is_asked || options.target.kind == TargetKind::Onnx) return Unit{};
  const auto oracle = runtime_cost_oracle(machine_roofline());
  const Cost before = oracle->estimate(graph), after = oracle->estimate(outcome.result.graph);
  const bool is_dearer =
      after.time_ms > before.time_ms || (after.kernels > before.kernels && !pays({TargetKind::Onnx}, after, before));
  if (!options.timer && !is_dearer) return Unit{};
  DriverOptions for_runtime = options;
  for_runtime.target.kind = TargetKind::Onnx;
  for_runtime.measured_costs = for_runtime.wants_code = false;
  GOPT_ASSIGN_OR_RETURN(Outcome onnx, optimize_graph(graph, rules, for_runtime));
  outcome.onnx = std::make_shared<const Outcome>(std::move(onnx));
  return Unit{};
}

}  // namespace gopt::driver
