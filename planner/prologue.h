// What is done to a convolution's source before it is multiplied, by the same kernel: Prologue of plan.h.
#pragma once

#include "gopt/plan.h"

namespace gopt::planner {

// Whether a kernel's prologue is one that tiles have (codegen/cuda/runtime/gopt_prologue.cuh). True without one.
bool has_prologue_of_tiles(const Plan& plan, const Kernel& kernel);

}  // namespace gopt::planner
