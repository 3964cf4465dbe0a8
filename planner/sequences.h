// Short kernels that read each other's results, in one launch. A launch behind another takes longer than most of what a
// step of a recurrence computes, and its blocks wait for all blocks of the one before; a cluster's blocks wait for each
// other in a fraction of that, and a chain of small products and elements needs no more of the device than a cluster.
#pragma once

#include "gopt/plan.h"

namespace gopt::planner {

// Of a sequence, in milliseconds, with its launch: that of its longest chain.
double sequence_ms(const Plan& plan, const Kernel& sequence);

// Takes together what is expected to take less time so, where its kernels' times were measured. Precondition: kernels
// are priced, buffers not placed.
void join_sequences(Plan& plan, const KernelCosts& costs);

}  // namespace gopt::planner
