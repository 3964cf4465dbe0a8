// Which of a pass's replacements a graph is to have.
#pragma once

#include <cstdint>
#include <vector>

#include "gopt/cost.h"
#include "passes/replace_each.h"

namespace gopt::optimizer {

// Those (by number, ascending) that together make the graph no dearer: all, or what does so of halves of those that do
// not make the nodes around them dearer. A model repeats its layers: of replacements whose surroundings are alike one
// tells.
std::vector<uint32_t> not_dearer(const Graph& graph, const Replacements& replacements, CostOracle& costs);

}  // namespace gopt::optimizer
