// Functions of rows of a CUDA plan.
#pragma once

#include "gopt/plan.h"
#include "printed_launch.h"

namespace gopt::codegen {

PrintedLaunch print_row_function(const Plan& plan, const Kernel& kernel, size_t number);

}  // namespace gopt::codegen
