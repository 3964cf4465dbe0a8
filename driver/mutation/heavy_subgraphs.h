// Where a model's time goes: few operators around each of its dearest kernels.
#pragma once

#include <set>
#include <vector>

#include "gopt/plan.h"

namespace gopt::driver {

// Sets of up to `most_nodes` connected nodes of the plan's graph that run, those around the dearest kernel first: what
// the kernel covers, then what it shares an operand with, reads from or is read by, dearest first. No two are equal.
std::vector<std::set<NodeId>> heavy_subgraphs(const Plan& plan, size_t most_nodes);

}  // namespace gopt::driver
