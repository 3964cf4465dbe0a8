// Short kernels in one launch (gopt/sequence.h): the table of their steps and where the operands of each are, a
// function for each distinct one, and the kernel that takes them (runtime/gopt_sequence.cuh).
#pragma once

#include <string>

#include "gopt/plan.h"

namespace gopt::codegen {

struct PrintedSequence {
  std::string name;         // of its file
  std::string text;         // of that
  std::string declaration;  // of the function that launches it
  std::string call;         // of that function
};

// `number`: of the sequence among the model's. Errors: an element type or operator without code, with the kernel.
Result<PrintedSequence> print_sequence(const Plan& plan, const Kernel& sequence, size_t number);

}  // namespace gopt::codegen
