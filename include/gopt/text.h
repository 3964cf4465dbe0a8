// The text form of graphs: print_graph and parse_graph are inverses (structure, names and types). Large constants are
// written as `weight` without their data, which the parser is given by name. Opaque nodes are printed, not parsed.
// Grammar: docs/grammar.md.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "gopt/graph.h"

namespace gopt {

std::string print_graph(const Graph& graph);
// Errors: "line 3, column 7: ..." with what was expected.
Result<Graph> parse_graph(std::string_view text, const std::map<std::string, Tensor>& weights = {});

}  // namespace gopt
