// What emitted code says of open extents beside its kernels: how large tensors are at a size, and which sizes there
// are.
#pragma once

#include <string>

#include "gopt/codegen.h"

namespace gopt::codegen {

// Of a plan with open extents: the tables kMaxima and kLives, and the functions bytes_at, why_refused and dims_at, of a
// gopt_runtime::General (cpu/runtime/gopt_variant.h).
std::string print_open_sizes(const Plan& plan);

// Why no code can be made of the plan for all sizes: a node's requirement that never holds, or that depends on more
// than the open extents.
Status check_open_sizes(const Plan& plan);

}  // namespace gopt::codegen
