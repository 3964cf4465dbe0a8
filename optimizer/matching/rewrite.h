// Applies a binding: builds the rule's right side over what the variables are bound to and puts it in place of the
// roots.
#pragma once

#include <vector>

#include "matching/match.h"

namespace gopt::optimizer {

struct Rewritten {
  Graph graph;
  std::vector<const Binding*> applied;
  // Parallel to it: nodes of the right side, or the variable's that is all of one, as they were built.
  std::vector<std::vector<NodePtr>> made;
  ValueMap became;  // what stands for values of the graph that was rewritten, and of `made`
};

// Applies bindings found in `graph`, in order, together. One that shares a node with an earlier one is left out, and so
// is one that does not fit, which a proved rule never causes. Errors: together they would make a cycle.
Result<Rewritten> apply_bindings(const Graph& graph, const std::vector<Binding>& bindings);

// Nodes that a binding matched, constants apart, which are shared.
std::vector<NodePtr> matched_nodes(const Graph& graph, const Binding& binding);
// Their names, for the trace; the operator's name where a node has none.
std::vector<std::string> matched_names(const Graph& graph, const Binding& binding);

}  // namespace gopt::optimizer
