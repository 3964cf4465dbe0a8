// Recurrences of a CUDA plan: all steps in one launch.
#pragma once

#include "gopt/plan.h"
#include "printed_launch.h"

namespace gopt::codegen {

PrintedLaunch print_recurrence(const Plan& plan, const Kernel& kernel, size_t number);

}  // namespace gopt::codegen
