// Kernels of a sequence: each is a step of a chain, which one cluster of blocks takes. Chains need nothing of each
// other.
#pragma once

#include <vector>

#include "gopt/plan.h"

namespace gopt {

using SequenceChain = std::vector<size_t>;  // numbers of members

// In the order in which members stand, as far as they read each other's results: of a chain, those before which fewer
// steps have to come are first. Precondition: no member reads what a later one writes.
std::vector<SequenceChain> chains_of(const Plan& plan, const std::vector<Kernel>& members);

}  // namespace gopt
