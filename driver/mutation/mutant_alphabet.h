// The alphabet that mutants of a subgraph are made of (docs/generator.md): its own operators, what their attributes
// become when windows are cut, joined or moved, and what takes their operands apart and puts them together.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "gopt/graph.h"

namespace gopt::driver {

// One family, as text that generate_rules() takes. Nothing where the subgraph has an operator or a type that is not
// enumerated: other elements than f32, extents that are not numbers, attributes that are no numbers or words.
std::optional<std::string> mutant_alphabet(const Graph& graph, const std::set<NodeId>& nodes);

}  // namespace gopt::driver
