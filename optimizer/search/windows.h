// Search of large graphs piece by piece. Rewrites are local, and what a search costs grows with the graph for each of
// them: pieces of some sixty nodes are searched apart, on several threads, and again with other borders.
#pragma once

#include "search/search.h"

namespace gopt::optimizer {

// As search_rewrites, which graphs of one piece are left to, or what the options' trail says in place of a search. What
// comes out does not depend on `options.workers`.
Found search_in_windows(const Graph& graph, const PatternSet& patterns, CostOracle& costs,
                        const SearchOptions& options);

// The nodes that run, cut into windows: each after what it uses, no path leaves a window and comes back to it. Borders
// are where few values cross.
std::vector<std::vector<NodeId>> windows_of(const Graph& graph);
// Windows of half that size, around the borders of those.
std::vector<std::vector<NodeId>> windows_around_borders(const Graph& graph);

}  // namespace gopt::optimizer
