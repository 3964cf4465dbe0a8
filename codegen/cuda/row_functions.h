// Functions of rows of a CUDA plan.
#pragma once

#include <string>

#include "gopt/plan.h"

namespace gopt::codegen {

// "void NAME(...)", which launches it, with its text, and the call.
struct PrintedRowFunction {
  std::string declaration, text, call;
};
PrintedRowFunction print_row_function(const Plan& plan, const Kernel& kernel, size_t number);

}  // namespace gopt::codegen
