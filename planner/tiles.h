// The rows of tiles among the implementations of CUDA's library kernels.
#pragma once

#include <vector>

#include "implementations.h"

namespace gopt::planner {

// Whether there are tiles for a convolution: of two axes, channels last, in one group.
bool convolves_by_tiles(const Plan& plan, const Kernel& kernel);

// One for each shape of a tile and each number of blocks that share its depth, for convolutions and for products.
std::vector<Implementation> tile_implementations();

}  // namespace gopt::planner
