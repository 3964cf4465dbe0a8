// The folder of a CPU model: model.cc with the run in order, or of several sizes variant_N.cc with that of each,
// kernels_N.cc with generated loops, and the runtime's files.
#pragma once

#include <string>
#include <vector>

#include "gopt/codegen.h"

namespace gopt::codegen {

Result<EmittedCode> emit_cpu(const SizedPlans& plans);

// What makes the library kernel number `primitive` of the model, as a statement of its creation, and what runs it.
struct LibraryCall {
  std::string create, run;
};
Result<LibraryCall> print_library_call(const Plan& plan, const Kernel& kernel, size_t primitive);

LibraryCall print_recurrence_call(const Plan& plan, const Kernel& kernel, const std::string& primitive);

// What calls a registered function: tables of the node's attributes, whose names have this number in them, and the
// call.
struct FunctionCall {
  std::string tables, run;
};
Result<FunctionCall> print_operator_call(const Plan& plan, const Kernel& kernel, const std::vector<std::string>& names,
                                         size_t number);

}  // namespace gopt::codegen
