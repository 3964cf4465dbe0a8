// The folder of a CPU model: model.cc with the run in order, or of several sizes variant_N.cc with that of each,
// kernels_N.cc with generated loops, and the runtime's files.
#pragma once

#include <string>

#include "gopt/codegen.h"

namespace gopt::codegen {

Result<EmittedCode> emit_cpu(const SizedPlans& plans);

// What makes the library kernel number `primitive` of the model, as a statement of its creation, and what runs it.
struct LibraryCall {
  std::string create, run;
};
Result<LibraryCall> print_library_call(const Plan& plan, const Kernel& kernel, size_t primitive);

}  // namespace gopt::codegen
