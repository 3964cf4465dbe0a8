// Extents that a node broadcasts to each other though nothing says which of them there are.
#pragma once

#include <utility>
#include <vector>

#include "gopt/graph.h"

namespace gopt::planner {

// Pairs of a node's inputs' that may be equal or not, or one of them 1; none where all are known.
std::vector<std::pair<Index, Index>> undecided_extents(const Node& node);

}  // namespace gopt::planner
