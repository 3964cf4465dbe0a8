// Kernels of a sequence: each is a step of a chain, which one cluster of blocks runs, with a barrier between steps that
// read what a step before made. Chains need nothing of each other.
#pragma once

#include <vector>

#include "gopt/plan.h"

namespace gopt {

struct SequenceStep {
  size_t member;  // number in the sequence
  bool waits;     // for all that the steps before it in the chain have written
};
using SequenceChain = std::vector<SequenceStep>;

// In the order in which members stand, as far as they read each other's results: of a chain, those before which fewer
// steps have to come are first. Precondition: no member reads what a later one writes.
std::vector<SequenceChain> chains_of(const Plan& plan, const std::vector<Kernel>& members);

}  // namespace gopt
