// Many replacements in one graph, where values may depend on other keys.
#pragma once

#include <utility>
#include <vector>

#include "gopt/graph.h"

namespace gopt::optimizer {

using Replacements = std::vector<std::pair<Value, Value>>;

// Every key replaced by its value, also within other values; `became` as replace_values has it. Precondition: types
// agree and no value depends on its own key.
Graph replace_each(const Graph& graph, const Replacements& replacements, ValueMap* became = nullptr);

}  // namespace gopt::optimizer
