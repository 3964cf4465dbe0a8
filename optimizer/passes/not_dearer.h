// Which of a pass's replacements a graph is to have.
#pragma once

#include <cstdint>
#include <vector>

#include "gopt/cost.h"
#include "passes/replace_each.h"

namespace gopt::optimizer {

// Those (by number, ascending) that together make the graph no dearer: all, or of halves of them what does. A model
// repeats its layers: replacements whose surroundings are alike are taken or left together, where one of them tells.
std::vector<uint32_t> not_dearer(const Graph& graph, const Replacements& replacements, CostOracle& costs);

}  // namespace gopt::optimizer
