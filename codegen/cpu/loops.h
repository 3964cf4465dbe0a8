// A generated kernel as a C++ function: OpenMP over the outer loops, the loop over contiguous memory vectorized.
#pragma once

#include <string>

#include "../lower.h"

namespace gopt::codegen {

// The function's text from its parameter list on, without its name, so that equal kernels can share one function:
// "(const float* __restrict in0, ..., float* __restrict out) {...}".
std::string print_cpu_kernel(const KernelBody& body, int threads);

// Indents by braces.
std::string indented(const std::string& code);

}  // namespace gopt::codegen
