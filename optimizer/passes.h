// The passes around the search. Each returns the same graph when it changes nothing. See pipeline.cc for their order.
#pragma once

#include <span>

#include "gopt/graph.h"

namespace gopt::optimizer {

// Merges equal nodes and drops what no output depends on, by building the graph again.
Graph merge_equal_nodes(const Graph& graph);

// Merges commutative nodes that differ in the order of their inputs alone.
Graph merge_commuted_nodes(const Graph& graph);

// Drops nodes whose definition says that they copy their input: Identity, a transpose that permutes nothing, a slice of
// all.
Graph drop_identities(const Graph& graph);
// Whether the node is one of those.
bool is_copy(const Node& node);

// Replaces small values that are known before any input is by constants. Large ones stay as they are: what depends on
// weights alone is free, and folded when code is made.
Graph fold_constants(const Graph& graph);

struct Pass {
  const char* name;
  Graph (*run)(const Graph&);
};
// Those that a search begins with, in order.
std::span<const Pass> passes_before_search();

}  // namespace gopt::optimizer
