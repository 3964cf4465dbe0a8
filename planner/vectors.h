// Rows of kernels that read each weight once for a few lines.
#pragma once

#include <vector>

#include "implementations.h"

namespace gopt::planner {

std::vector<Implementation> vector_implementations();

}  // namespace gopt::planner
