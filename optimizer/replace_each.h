// Many replacements in one graph, where values may depend on other keys.
#pragma once

#include <utility>
#include <vector>

#include "gopt/graph.h"

namespace gopt::optimizer {

// Replaces from the last key to the first, so that a value may itself depend on keys before it. Keys are of `graph`.
Graph replace_each(const Graph& graph, std::vector<std::pair<Value, Value>> replacements);

}  // namespace gopt::optimizer
