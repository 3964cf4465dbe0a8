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

bool has_own_file_graph(const Graph& graph, const DriverOptions& options) {
  const auto& file = options.file_graph;
  return file && (file->hash() != graph.hash() || file->inputs().size() != graph.inputs().size());
}

namespace {

bool is_dearer_in_runtime(const Graph& graph, const Graph& result) {
  const auto oracle = runtime_cost_oracle(machine_roofline());
  const Cost before = oracle->estimate(graph), after = oracle->estimate(result);
  return after.time_ms > before.time_ms || (after.kernels > before.kernels && !pays({TargetKind::Onnx}, after, before));
}

}  // namespace

Status choose_onnx(const Graph& graph, const std::vector<RewriteRule>& rules, const DriverOptions& options,
                   Outcome& outcome) {
  const bool is_own = has_own_file_graph(graph, options);
  const bool is_asked = options.wants_code || options.timer || is_own;  // else the target was chosen for the file
  if (!options.wants_onnx || !is_asked || options.target.kind == TargetKind::Onnx) return Unit{};
  if (!is_own && !options.timer && !is_dearer_in_runtime(graph, outcome.result.graph)) return Unit{};
  DriverOptions for_runtime = options;
  for_runtime.target = {TargetKind::Onnx, options.target.threads};
  for_runtime.measured_costs = for_runtime.wants_code = false;
  for_runtime.file_graph.reset();
  GOPT_ASSIGN_OR_RETURN(Outcome onnx, optimize_graph(is_own ? *options.file_graph : graph, rules, for_runtime));
  outcome.onnx = std::make_shared<const Outcome>(std::move(onnx));
  return Unit{};
}

}  // namespace gopt::driver
