// The passes around the search. Each says which values of a graph others may stand for; there are none where it has
// nothing to change. See pipeline.cc, which puts them in place, for their order.
#pragma once

#include <span>

#include "replace_each.h"

namespace gopt::optimizer {

// Merges equal nodes.
Replacements merge_equal_nodes(const Graph& graph);

// Merges commutative nodes that differ in the order of their inputs alone.
Replacements merge_commuted_nodes(const Graph& graph);

// Drops nodes whose definition says that they copy their input: Identity, a transpose that permutes nothing, a slice of
// all.
Replacements drop_identities(const Graph& graph);
// Whether the node is one of those.
bool is_copy(const Node& node);

// Replaces small values that are known before any input is by constants. Large ones stay as they are: what depends on
// weights alone is free, and folded when code is made.
Replacements fold_constants(const Graph& graph);

struct Pass {
  const char* name;
  Replacements (*run)(const Graph&);
};
// Those that a search begins with, in order.
std::span<const Pass> passes_before_search();

}  // namespace gopt::optimizer
