// The part of an emitted model's source that is the same for every target: tables of what the tensors and kernels are,
// behind the functions of runtime/model.h that return them.
#pragma once

#include <string>

#include "gopt/plan.h"

namespace gopt::codegen {

std::string print_tables(const Plan& plan);
std::string quoted(const std::string& text);  // as a C string literal

}  // namespace gopt::codegen
