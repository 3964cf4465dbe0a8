// The surroundings of a rewrite as a graph of their own, so that what a rewrite changes is priced without the rest.
#pragma once

#include "matching/match.h"

namespace gopt::optimizer {

struct Part {
  Graph graph;      // what comes from outside is an input, what is used outside an output; weights are as they were
  Binding binding;  // the same match, in `graph`
};

// What a binding matches, with the nodes around it that a plan may join with it.
Part part_around(const Graph& graph, const Binding& binding);

}  // namespace gopt::optimizer
