// The second half of planning: kernels in launch order with the buffers that they read and write, and where each buffer
// lies. See cover.h for the first half.
#pragma once

#include "cover.h"

namespace gopt::planner {

// Kernels and buffers of a cover; arena offsets are not assigned yet.
Plan build_kernels(const Cover& cover);
// Those alone that end in these generated nodes or run these library nodes, with conversions of what they read.
Plan build_kernels_of(const Cover& cover, const std::vector<uint32_t>& nodes);

// Stores results where a residual lies that dies there, and places every arena buffer by its lifetime.
void place_buffers(Plan& plan);

// Kernels with implementations and layouts chosen by the estimated times; buffers are not placed yet.
Result<Plan> cheapest_plan(const Graph& graph, const CoverOptions& options, KernelCosts& costs);

}  // namespace gopt::planner
