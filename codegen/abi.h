// The part of an emitted model's source that is the same for every target: tables of what the tensors and kernels are,
// behind the functions of runtime/model.h that return them.
#pragma once

#include <string>

#include "gopt/codegen.h"

namespace gopt::codegen {

// Tables kInputs and kOutputs of gopt_tensor_info, and kKernelNames. Open extents are symbols.
std::string print_infos(const std::vector<ModelValue>& inputs, const std::vector<ModelValue>& outputs);
std::string print_kernel_names(const Plan& plan);

// Those of a model of fixed shapes, and the functions that return them.
std::string print_tables(const Plan& plan);
std::string quoted(const std::string& text);  // as a C string literal

// Of timing plans. What adds a library kernel, so that one that the library refuses is none.
std::string print_attempt(const std::string& create);
// What writes anew all that the kernel reads, as whoever comes before it in a model does; `last` is the last argument
// of the runtime's functions.
std::string print_refresh(const Plan& plan, const Kernel& kernel, const std::string& last);

}  // namespace gopt::codegen
