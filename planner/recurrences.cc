#include "recurrences.h"

#include "gopt/recurrence.h"
#include "milliseconds.h"

namespace gopt::planner {

double recurrence_operations(const Plan& plan, const Kernel& kernel) {
  const std::vector<int64_t>& states = plan.buffer(kernel.output_buffers[0]).dims;  // of all steps
  const auto gates = static_cast<double>(kernel.nodes[0]->opaque->recurrence->gates());
  return 2 * static_cast<double>(element_count(states)) * static_cast<double>(states.back()) * gates;
}

// Steps follow one another: threads, or blocks, wait for each other in each.
double recurrence_ms(const Plan& plan, const Kernel& kernel, const Roofline& roofline) {
  const bool is_on_cpu = plan.target.kind == TargetKind::Cpu;
  const double efficiency = is_on_cpu ? 0.35 : 0.02, step_us = is_on_cpu ? 1 : 2.2;
  const auto steps = static_cast<double>(plan.buffer(kernel.output_buffers[0]).dims[0]);
  const double compute_ms = recurrence_operations(plan, kernel) / (roofline.gflops * efficiency * 1e6);
  return in_steps(compute_ms + (roofline.launch_us + steps * step_us) * 1e-3);
}

}  // namespace gopt::planner
