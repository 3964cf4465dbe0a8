// What is done to a convolution's source before it is multiplied, by the same kernel: Prologue of plan.h.
#pragma once

#include "gopt/plan.h"

namespace gopt::planner {

// Whether a kernel's prologue is one that tiles have (codegen/cuda/runtime/gopt_prologue.cuh). True without one.
bool has_prologue_of_tiles(const Plan& plan, const Kernel& kernel);

// Whether tiles have it whose depth so many blocks divide: a row's mean is not known before all of the row was read.
template <int kSplit>
bool takes_prologue(const Prologue& prologue) {
  return kSplit == 1 || !prologue.normalizes_rows;
}

}  // namespace gopt::planner
