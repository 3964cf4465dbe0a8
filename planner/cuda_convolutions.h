// The rows of CUDA's convolutions by libraries and by a thread an element: of plain tensors, or of channels last.
#pragma once

#include <vector>

#include "implementations.h"

namespace gopt::planner {

std::vector<Implementation> cuda_convolution_implementations();

}  // namespace gopt::planner
