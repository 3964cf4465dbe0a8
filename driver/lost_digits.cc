#include "lost_digits.h"

#include <algorithm>

namespace gopt::driver {

std::set<ValueKey> kernels_in_floats(const Plan& plan, double share) {
  std::vector<const Kernel*> kernels;
  for (const Kernel& kernel : plan.kernels)
    if (is_of_two_terms(kernel)) kernels.push_back(&kernel);
  // What takes longest gains most.
  std::ranges::stable_sort(kernels, {}, &Kernel::estimated_ms);
  const auto stay = static_cast<size_t>(share * static_cast<double>(kernels.size()));
  std::set<ValueKey> values;
  for (size_t i = 0; i + stay < kernels.size(); i++) values.insert(key_of(kernels[i]->outputs[0]));
  return values;
}

}  // namespace gopt::driver
