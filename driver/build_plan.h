// The code of a plan, built and loaded into this process.
#pragma once

#include "gopt/codegen.h"

namespace gopt::driver {

// Errors: those of emission and of the compiler, no folder for temporary files.
Result<LoadedModel> build_plan(const Plan& plan, int threads);
Result<LoadedModel> build_code(const EmittedCode& code, int threads);
// Compiles what the plan's code is made of, which build_plan then finds done; weights are not folded, nothing is loaded.
// May run beside anything. Errors: likewise.
Status compile_ahead(const Plan& plan);

}  // namespace gopt::driver
