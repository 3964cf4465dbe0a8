// What recurrences cost: kernels of which there is one way alone, so that their times are not measured.
#pragma once

#include "gopt/kernel_costs.h"
#include "gopt/plan.h"

namespace gopt::planner {

// Multiplications and additions of states by weights.
double recurrence_operations(const Plan& plan, const Kernel& kernel);
// In milliseconds, with its launch.
double recurrence_ms(const Plan& plan, const Kernel& kernel, const Roofline& roofline);

}  // namespace gopt::planner
