// Which rules match at one node, and what each would make of the graph's cost: for people who ask why a rule was not
// applied. The same matches and prices as the search's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gopt/optimizer.h"

namespace gopt {

struct RuleMatch {
  std::string rule;
  RuleMarks not_allowed;                 // marks that keep it from being applied unasked
  bool is_disabled = false;              // by the options
  std::vector<std::string> nodes;        // that it matches, by name
  bool can_apply = true;                 // else the right side does not fit the types, sizes or constants here
  double after_ms = 0;                   // of the whole graph, with this rewrite alone
  double gain_ms = 0, uncertain_ms = 0;  // by what it changes of the nodes around it
  bool is_gain = false;                  // by more than costs are uncertain by, or as long and less to compute
};

struct MatchesAtNode {
  Graph graph;                   // that the search begins with
  NodePtr node;                  // in it; null where a pass took it away
  std::string taken_by;          // the pass
  double before_ms = 0;          // of the whole graph
  std::vector<RuleMatch> rules;  // gains first, then by cost
};

// Of all rules, whatever their marks. Errors: those of optimize(). Precondition: the graph contains the node.
Result<MatchesAtNode> matches_at(const Graph& graph, const NodePtr& node, const std::vector<RewriteRule>& rules,
                                 CostOracle& costs, const SearchOptions& options = {});

}  // namespace gopt
