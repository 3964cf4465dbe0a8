// The rows of the CPU's convolutions.
#pragma once

#include <vector>

#include "implementations.h"

namespace gopt::planner {

std::vector<Implementation> cpu_convolution_implementations();

}  // namespace gopt::planner
