// What recurrences cost: kernels of which there is one way alone, so that their times are not measured.
#pragma once

#include "gopt/kernel_costs.h"
#include "gopt/plan.h"

namespace gopt::planner {

// Multiplications and additions of states by weights, of open extents at the usual ones.
double recurrence_operations(const Plan& plan, const Kernel& kernel);
// The same of a recurrence's node; 0 where its extents are no numbers.
double recurrence_operations(const Node& node);
// In milliseconds, with its launch.
double recurrence_ms(const Plan& plan, const Kernel& kernel, const Roofline& roofline);

}  // namespace gopt::planner
