// The code of a plan, built and loaded into this process.
#pragma once

#include "gopt/codegen.h"

namespace gopt::driver {

// Errors: those of emission and of the compiler, no folder for temporary files.
Result<LoadedModel> build_plan(const Plan& plan, int threads);
Result<LoadedModel> build_code(const EmittedCode& code, int threads);
// Compiles what these plans' code is made of, which build_plan then finds done; nothing is loaded. Errors, for each:
// likewise.
std::vector<Status> compile_ahead(const std::vector<const Plan*>& plans);

}  // namespace gopt::driver
