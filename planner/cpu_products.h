// The rows of the CPU's matrix products.
#pragma once

#include <vector>

#include "implementations.h"

namespace gopt::planner {

std::vector<Implementation> cpu_product_implementations();

// The share of the peak that a library's product is expected to reach: less of few rows, more of packed weights.
double product_efficiency(const Plan& plan, const Kernel& kernel);

}  // namespace gopt::planner
