// What a search finds, and TASO's backtracking search: graphs in a queue by cost, the cheapest is rewritten in every
// way, what costs less than alpha times the best is kept. Two things make it quick on large graphs: a rule's bindings
// are first applied all together, and a graph that is no improvement is only rewritten near what changed.
// Single-threaded; deterministic for a step budget.
#pragma once

#include "gopt/optimizer.h"
#include "matching/pattern_set.h"
#include "passes/lineage.h"

namespace gopt::optimizer {

struct Found {
  Graph graph;
  Cost cost;
  std::vector<AppliedRule> applied;
  std::vector<RewriteStep> rewrites;  // whose uses, in order, are what `applied` lists
  std::vector<SearchPoint> trajectory;
  std::map<std::string, RuleTrials> trials;          // by rule
  std::optional<SearchTrail> trail = SearchTrail();  // none: it cannot be written down, or did not fit
  StopReason stop_reason = StopReason::Saturated;
  int steps = 0;
  long rules_tried = 0, graphs_seen = 0;
};

// Whether a search that ended so would find no more if it were made again.
inline bool is_exhausted(StopReason reason) {
  return reason == StopReason::Saturated || reason == StopReason::NoGain || reason == StopReason::EGraphLimit;
}

// By the kind that the options name; their trail is not looked at. Of the matches in `graph` itself only those that are
// `wanted`, where that is given.
Found search_rewrites(const Graph& graph, const PatternSet& patterns, CostOracle& costs, const SearchOptions& options,
                      const std::function<bool(const Binding&)>& wanted = {});
Found search_by_saturation(const Graph& graph, const PatternSet& patterns, CostOracle& costs,
                           const SearchOptions& options, const std::function<bool(const Binding&)>& wanted);

}  // namespace gopt::optimizer
