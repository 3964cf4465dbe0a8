// Extents that a node broadcasts to each other though nothing says which of them there are.
#pragma once

#include <optional>
#include <utility>

#include "gopt/graph.h"

namespace gopt::planner {

// The first two of a node's inputs that may be equal or not, or one of them 1; nothing where all are known.
std::optional<std::pair<Index, Index>> undecided_extents(const Node& node);

}  // namespace gopt::planner
