// The rows of tiles of warpgroups among the implementations of CUDA's library kernels.
#pragma once

#include <vector>

#include "implementations.h"

namespace gopt::planner {

// Whether there are tiles of warpgroups for a kernel: operands of one type, one matrix, two spatial axes of
// channels last; groups of constant weights that fill slices of channels (groups_of_slice); lines of whole chunks of 16
// bytes and windows that the copy engine can describe.
bool is_for_warpgroups(const Plan& plan, const Kernel& kernel);
// Of such a kernel: slices of 128 bytes of its depth, each of which is of one tap.
double slices_of_warpgroups(const Plan& plan, const Kernel& kernel);

// One for each shape and each number of blocks that share the depth, for convolutions and for products.
std::vector<Implementation> warpgroup_implementations();

}  // namespace gopt::planner
