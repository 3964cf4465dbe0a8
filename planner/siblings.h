// Kernels that need nothing of each other, in one launch: at batch 1 each alone fills a part of the device, and a
// launch takes longer than most of them compute.
#pragma once

#include "gopt/plan.h"

namespace gopt::planner {

// Launches of several kernels of the plan that may take less time than these one after another: for each set of
// siblings by the tiles that are expected to be the fastest.
std::vector<Kernel> possible_groups(const Plan& plan, KernelCosts& costs);

// Takes those whose measured time is less than their members'. Precondition: kernels are priced, buffers not placed.
void group_siblings(Plan& plan, KernelCosts& costs);

}  // namespace gopt::planner
