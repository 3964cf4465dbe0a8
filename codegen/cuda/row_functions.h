// Functions of rows of a CUDA plan.
#pragma once

#include "gopt/plan.h"
#include "printed_launch.h"

namespace gopt::codegen {

// `scratch`: a pointer's text to as much memory as the launch uses, at a multiple of 128 bytes.
PrintedLaunch print_row_function(const Plan& plan, const Kernel& kernel, size_t number, const std::string& scratch);

}  // namespace gopt::codegen
