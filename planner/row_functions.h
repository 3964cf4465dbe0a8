// What functions of rows cost: kernels of which there is one way alone, so that their times are not measured.
#pragma once

#include "gopt/kernel_costs.h"
#include "gopt/plan.h"

namespace gopt::planner {

// Scalar operations of a node that is a row's function; 0 where its extents are no numbers.
double row_function_operations(const Node& node);
// The same of a kernel.
double row_function_operations(const Plan& plan, const Kernel& kernel);
// Estimated milliseconds.
double row_function_ms(const Plan& plan, const Kernel& kernel, const Roofline& roofline);

}  // namespace gopt::planner
