// Weights that nodes compute of other weights, as weights of their own: for files, whose readers may compute such nodes
// in each run.
#pragma once

#include "gopt/graph.h"

namespace gopt {

// The graph with values that depend on initializers alone computed, where they take no more bytes than what they are
// made of, and little time: those that `original` does not compute, too, which stays as its author wrote it. What
// cannot be computed stays a node.
Graph with_computed_weights(const Graph& graph, const Graph& original);

}  // namespace gopt
