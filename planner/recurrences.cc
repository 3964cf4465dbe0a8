#include "recurrences.h"

#include "gopt/recurrence.h"
#include "milliseconds.h"

namespace gopt::planner {
namespace {

// Of [steps, batch, ...] and [directions, gates x hidden, hidden].
double operations_of(const std::vector<int64_t>& sums, const std::vector<int64_t>& weights) {
  return 2 * static_cast<double>(sums[0] * sums[1]) * static_cast<double>(element_count(weights));
}

}  // namespace

double recurrence_operations(const Plan& plan, const Kernel& kernel) {
  const auto of = [&](Recurrence::Input input) -> const std::vector<int64_t>& {
    return plan.buffer(kernel.input_buffers[static_cast<size_t>(operand_of(*kernel.nodes[0], input))]).dims;
  };
  return operations_of(of(Recurrence::kSums), of(Recurrence::kWeights));
}

double recurrence_operations(const Node& node) {
  const TensorType &sums = node.inputs[Recurrence::kSums].type(), &weights = node.inputs[Recurrence::kWeights].type();
  if (!sums.has_static_shape() || !weights.has_static_shape()) return 0;
  return operations_of(sums.static_shape(), weights.static_shape());
}

// Steps follow one another: threads, or blocks, wait for each other in each.
double recurrence_ms(const Plan& plan, const Kernel& kernel, const Roofline& roofline) {
  // By what was measured (docs/codegen_cuda.md): tensor cores multiply halves.
  constexpr double kOnCpu = 0.35, kOfFloats = 0.35, kOfHalves = 1.5;
  const bool is_on_cpu = plan.target.kind == TargetKind::Cpu;
  const double efficiency = is_on_cpu ? kOnCpu : may_recur_in_halves(plan, kernel) ? kOfHalves : kOfFloats, step_us = 1;
  const auto steps = static_cast<double>(plan.buffer(kernel.input_buffers[0]).dims[0]);
  const double compute_ms = recurrence_operations(plan, kernel) / (roofline.gflops * efficiency * 1e6);
  return in_steps(compute_ms + (roofline.launch_us + steps * step_us) * 1e-3);
}

}  // namespace gopt::planner

namespace gopt {

bool may_recur_in_halves(const Plan& plan, const Kernel& kernel) {
  const std::vector<int64_t>& sums = plan.buffer(kernel.input_buffers[0]).dims;
  return plan.target.kind == TargetKind::Cuda && plan.target.precision != Precision::Fp32 && sums[1] > 1 &&
         kernel.nodes[0]->opaque->recurrence->cell != Recurrence::Cell::Relu;
}

}  // namespace gopt
