// Applies a binding: builds the rule's right side over what the variables are bound to and puts it in place of the
// roots.
#pragma once

#include <vector>

#include "match.h"

namespace gopt::optimizer {

struct Rewritten {
  Graph graph;
  std::vector<Hash128> made;  // nodes of the right side, or the variable's that is all of it
};

// `source` is the graph that the binding was found in; `graph` may be a later one, in which earlier nodes are the same.
// Errors: a matched node is gone from `graph`; the right side does not fit, which a proved rule never causes.
Result<Rewritten> apply_binding(const Graph& graph, const Graph& source, const Binding& binding);

// Names of the nodes that a binding matched, for the trace; the operator's name where a node has none.
std::vector<std::string> matched_names(const Graph& source, const Binding& binding);

}  // namespace gopt::optimizer
