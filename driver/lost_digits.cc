#include "lost_digits.h"

#include <algorithm>

namespace gopt::driver {
namespace {

std::vector<const Kernel*> of_two_terms(const Plan& plan) {
  std::vector<const Kernel*> kernels;
  for (const Kernel& kernel : plan.kernels)
    if (is_of_two_terms(kernel)) kernels.push_back(&kernel);
  return kernels;
}

}  // namespace

size_t kernels_of_two_terms(const Plan& plan) { return of_two_terms(plan).size(); }

Result<size_t> leave_two_terms(const PlanWith& plan_with, size_t most) {
  std::set<ValueKey> values;
  // In another plan other kernels may be of two terms, but none that was named.
  while (true) {
    GOPT_ASSIGN_OR_RETURN(const Plan* plan, plan_with(values));
    std::vector<const Kernel*> kernels = of_two_terms(*plan);
    if (kernels.size() <= most) return values.size();
    std::ranges::stable_sort(kernels, {}, &Kernel::estimated_ms);
    for (size_t i = 0; i + most < kernels.size(); i++) values.insert(key_of(kernels[i]->outputs[0]));
  }
}

}  // namespace gopt::driver
