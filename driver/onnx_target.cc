#include "onnx_target.h"

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

}  // namespace gopt::driver
