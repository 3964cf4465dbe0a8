// The part of an emitted model's source that is the same for every target: tables of what the tensors and kernels are,
// behind the functions of runtime/model.h that return them.
#pragma once

#include <string>

#include "gopt/plan.h"

namespace gopt::codegen {

std::string print_tables(const Plan& plan);
std::string quoted(const std::string& text);  // as a C string literal

// A model that runs in one thread refuses to in another: `Running` says so, and kGuardedError what gopt_error returns.
// Models have a member `std::atomic_flag busy = ATOMIC_FLAG_INIT;`.
extern const char *const kRunning, *const kGuardedError;

// Of timing plans. What adds a library kernel, so that one that the library refuses is none.
std::string print_attempt(const std::string& create);
// What writes anew all that the kernel reads, as whoever comes before it in a model does; `last` is the last argument
// of the runtime's functions.
std::string print_refresh(const Plan& plan, const Kernel& kernel, const std::string& last);

}  // namespace gopt::codegen
