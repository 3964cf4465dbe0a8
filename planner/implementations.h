// The ways to run a library kernel: one row each. A new one is its row here, what the target's emitter prints for it,
// and the runtime's code (docs/adding_a_kernel.md); no other place names it.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gopt/plan.h"

namespace gopt::planner {

struct Implementation {
  std::string_view name;  // Kernel::implementation; empty where there is one way alone
  KernelKind kind;
  TargetKind target;
  // Whether it computes this kernel, of which all else is known. Preconditions: kind and target are the row's.
  bool (*accepts)(const Plan& plan, const Kernel& kernel);
  // The share of the arithmetic peak that the analytic costs expect of it.
  double (*efficiency)(const Plan& plan, const Kernel& kernel);
  // The runtime times other rows' ways when a model is created, and keeps the fastest: for kernels of which no row's
  // time was measured. It is never timed itself.
  bool chooses_at_start = false;
  // Of one among many of a family: whether it may be the fastest for this kernel. Others are not priced.
  bool (*is_likely)(const Plan& plan, const Kernel& kernel) = nullptr;
  // Whether another family is known to be faster for a kernel that stands alone: not priced there, but in groups.
  bool (*is_outdone)(const Plan& plan, const Kernel& kernel) = nullptr;
  bool takes_prologue = false;  // whether kernels that have one are among those that it computes
};

// Whether kernels of this kind are library calls: those that have rows.
inline bool is_library(KernelKind kind) {
  return kind == KernelKind::Convolution || kind == KernelKind::MatrixProduct || kind == KernelKind::Attention;
}
// Whether a kernel's time is measured: of a function of the caller's it is not known, and of a node that is whole there
// is one way alone.
inline bool is_timed(KernelKind kind) {
  return kind != KernelKind::External && kind != KernelKind::Recurrence && kind != KernelKind::RowFunction;
}
// Whether floats may be sums of two bfloat16 numbers in this kernel.
inline bool may_lose_digits(const Plan& plan, const Kernel& kernel) {
  const bool stays = kernel.outputs.empty() || plan.target.in_fp32.contains(key_of(kernel.outputs[0]));
  return plan.target.precision == Precision::Bf16x3 && !stays;
}
// As Target::without names them: a family's rows, "tiles:64x64:1" and others, all at once ("kernel:tiles"), and those
// of one size ("kernel:tiles:64x64").
inline std::vector<std::string> part_names(const Implementation& row) {
  const size_t family = row.name.find(':'), size = row.name.rfind(':');
  std::vector<std::string> names{"kernel:" + std::string(row.name.substr(0, family))};
  if (family != size) names.push_back("kernel:" + std::string(row.name.substr(0, size)));
  return names;
}
// Whether a part whose name begins so is switched off.
inline bool lacks_any(const Target& target, const std::string& beginning) {
  const auto first = target.without.lower_bound(beginning);
  return first != target.without.end() && first->starts_with(beginning);
}
// Which of a family may be the fastest is not known where sizes of it are switched off: what would have been near the
// fastest may be one of these.
inline bool lacks_sizes(const Target& target, const Implementation& row) {
  return !target.without.empty() && lacks_any(target, part_names(row)[0] + ":");
}
inline bool is_switched_off(const Target& target, const Implementation& row) {
  return !target.without.empty() &&
         std::ranges::any_of(part_names(row), [&](const std::string& name) { return target.without.contains(name); });
}
// In the order in which they are asked; of those that take the same time the first is chosen.
std::span<const Implementation> implementations();
// The kernel's own. Precondition: it is a library kernel whose implementation was chosen.
const Implementation& implementation_of(const Plan& plan, const Kernel& kernel);

}  // namespace gopt::planner
