// Functions of rows of a CUDA plan.
#pragma once

#include "gopt/plan.h"
#include "printed_launch.h"

namespace gopt::codegen {

struct PrintedRowFunction {
  PrintedLaunch launch;
  int64_t scratch_bytes = 0;  // that it uses while it runs
};
// `scratch`: a pointer's text to so much memory, at a multiple of 128 bytes.
PrintedRowFunction print_row_function(const Plan& plan, const Kernel& kernel, size_t number,
                                      const std::string& scratch);

}  // namespace gopt::codegen
