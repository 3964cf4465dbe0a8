// A graph's values in an e-graph, grown by rules: each class holds all that was found to equal a value. A rule with
// several outputs is matched from what its roots share, and joins each root with its own output (Tensat's
// multi-patterns, without the product of all pairs). What a binding in a graph must meet (match.h) is asked of a match
// here, too. See extraction.h for how a graph is taken out again.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <unordered_map>

#include "equality/schedule.h"
#include "gopt/optimizer.h"
#include "matching/match.h"
#include "matching/pattern_set.h"

namespace gopt::optimizer {

// Patterns as they are matched in e-graphs; they are the same for every e-graph of a search.
class EqualityPatterns {
 public:
  const EqualityPattern& of(const Pattern& pattern);

 private:
  std::unordered_map<const Pattern*, EqualityPattern> patterns_;
};

// Where a rule joined two values: output k of its left side, `roots[k]`, is what its right side made, `values[k]`.
struct Join {
  const Pattern* pattern;
  std::vector<EqualityId> roots, values;
};

struct GraphEqualities {
  explicit GraphEqualities(const Graph& graph);
  GraphEqualities(const GraphEqualities&) = delete;
  GraphEqualities& operator=(const GraphEqualities&) = delete;

  Graph graph;
  Facts facts;
  EqualityGraph equalities;
  std::unordered_map<Value, EqualityId, HashOfValue> ids;  // of the graph's values
  std::vector<Value> originals;  // by id: the first value that it was made for; none: a rule's
  std::vector<PatternApplication> applications;
  std::vector<Join> joins;                       // parallel to them
  std::unordered_map<EqualityId, size_t> maker;  // of what rules made: the application
  bool is_saturated = false;                     // no rule gives anything new; else a limit ended it

  bool is_original(EqualityId id) const { return id < originals.size() && originals[id]; }
};

struct SaturationCounts {
  std::map<std::string, RuleTrials> trials;  // by rule
  long tried = 0;
};

// Until nothing is new, a limit is met or `should_stop` says so. Of the matches in the graph itself only those that are
// `wanted`, where that is given.
void saturate(GraphEqualities& graph, const PatternSet& patterns, EqualityPatterns& compiled,
              const SaturationLimits& limits, const std::function<bool(const Binding&)>& wanted,
              const std::function<bool()>& should_stop, SaturationCounts& counts);

}  // namespace gopt::optimizer
