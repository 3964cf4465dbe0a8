// The text form of graphs: print_graph and parse_graph are inverses (structure, names and types; large constants are
// written as `weight` with their id and come back without data). Grammar: docs/grammar.md.
#pragma once

#include <string>
#include <string_view>

#include "gopt/graph.h"

namespace gopt {

std::string print_graph(const Graph& graph);
// Errors: "line 3, column 7: ..." with what was expected.
Result<Graph> parse_graph(std::string_view text);

}  // namespace gopt
