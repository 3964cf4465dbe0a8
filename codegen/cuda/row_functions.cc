#include "row_functions.h"

#include "../row_function_calls.h"

namespace gopt::codegen {

PrintedLaunch print_row_function(const Plan& plan, const Kernel& kernel, size_t number) {
  const RowFunctionCall call = row_function_call(plan, kernel);
  const std::string name = "gopt_rows_" + std::to_string(number),
                    head = "void " + name + "(" + call.parameters + ", cudaStream_t stream)";
  return {.declaration = head + ";\n",
          .text = "// " + kernel.name + "\n" + head +
                  " {\n  using namespace gopt_runtime;\n  using namespace rows;\n  " + call.function + "(" +
                  call.names + ", " + call.sizes + ", stream);\n}\n\n",
          .call = name + "(" + call.pointers + ", stream);"};
}

}  // namespace gopt::codegen
