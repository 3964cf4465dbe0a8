// Many replacements in one graph, where values may depend on other keys.
#pragma once

#include <utility>
#include <vector>

#include "gopt/graph.h"

namespace gopt::optimizer {

// Every key replaced by its value, also within other values. Precondition: types agree and no value depends on its own
// key.
Graph replace_each(const Graph& graph, const std::vector<std::pair<Value, Value>>& replacements);

}  // namespace gopt::optimizer
