// Recurrences of a CUDA plan: all steps in one launch.
#pragma once

#include <string>

#include "gopt/plan.h"

namespace gopt::codegen {

// "void NAME(...)", which launches it, with its text, and the call.
struct PrintedRecurrence {
  std::string declaration, text, call;
};
PrintedRecurrence print_recurrence(const Plan& plan, const Kernel& kernel, size_t number);

}  // namespace gopt::codegen
