// Rows of kernels that keep a patch of an image of few channels in shared memory.
#pragma once

#include <vector>

#include "implementations.h"

namespace gopt::planner {

std::vector<Implementation> patch_implementations();

}  // namespace gopt::planner
