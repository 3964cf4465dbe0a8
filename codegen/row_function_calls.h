// Calls of the runtime's functions of rows, which have the same names and first arguments on every target.
#pragma once

#include <string>

#include "gopt/plan.h"

namespace gopt::codegen {

bool has_row_functions(const Plan& plan);

struct RowFunctionCall {
  std::string function;    // "take_top<true>"
  std::string parameters;  // of what it reads and writes: "const float* x, float* y0, int64_t* y1"
  std::string names;       // "x, y0, y1"
  std::string pointers;    // what is passed for them; null for what nobody reads
  std::string sizes;       // what follows: "{2, 300, 1}, 10"
};
RowFunctionCall row_function_call(const Plan& plan, const Kernel& kernel);

}  // namespace gopt::codegen
