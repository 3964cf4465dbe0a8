// Which kernels of a plan of bf16x3 compute in floats after all, where sums of two bfloat16 lose more over a whole
// network than that precision is said to.
#pragma once

#include "planned_graph.h"

namespace gopt::driver {

constexpr double kMostLost = 2e-5;  // of the largest result

// Of a plan's kernels in this arithmetic, those that multiply least, so that about so many of the roundings' squares
// are left as `share` says, 0 to 1: what each adds is taken to be as much as any other's. Their results, as
// Target::in_fp32 has them.
std::set<ValueKey> kernels_in_floats(const Plan& plan, double share);

}  // namespace gopt::driver
