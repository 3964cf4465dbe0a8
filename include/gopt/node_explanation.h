// Why a node of a model was rewritten or fused, or was not: what `gopt explain` says, as a value.
#pragma once

#include <string>
#include <vector>

#include "gopt/driver.h"
#include "gopt/near_misses.h"
#include "gopt/node_plan.h"
#include "gopt/rule_matches.h"

namespace gopt {

enum class RuleFate {
  Applied,     // to this node, in the result
  NotAllowed,  // a mark has to be allowed
  Disabled,    // by the options
  DoesNotFit,  // its right side cannot be put here
  NoGain,      // beyond what costs are uncertain by
  NotProved,
  Overtaken,  // it gains something, but other rewrites of the result gain more, or the search ended before
};
std::string to_string(RuleFate fate);

struct RuleAtNode {
  RuleMatch match;
  RuleFate fate = RuleFate::NoGain;
  std::string why;  // the marks to allow, why it is not proved
};

// A node of the result that stands where the node was.
struct NodeOfResult {
  std::string name, op;
  NodePlan plan;
};

struct NodeExplanation {
  std::string name, op;
  NodePlan original;                  // in the plan of the model as it is
  std::vector<NodeOfResult> result;   // in the plan of the optimized one
  std::string taken_by;               // the pass that took it away before the search, if one did
  std::vector<RuleAtNode> rules;      // that match at the node as the search meets it
  std::vector<NearMiss> near_misses;  // rules that would end in it but for one thing: a condition that is not decided
  std::vector<AppliedRule> applied;   // rewrites of the result that took it, in order
  double original_ms = 0, searched_ms = 0, result_ms = 0;  // whole graphs; searched: after the passes, before any rule
  StopReason stop_reason = StopReason::Off;
  std::vector<std::string> notes;  // of the optimization
};

// Optimizes the graph by the options (no code is wanted or timed) and looks at the node `name`, or the one that makes
// the value of that name. Errors: there is none, with the nearest names; those of optimize_graph.
Result<NodeExplanation> explain_node(const Graph& graph, const std::string& name, const std::vector<RewriteRule>& rules,
                                     const DriverOptions& options);
// The same of one of the graph's nodes.
Result<NodeExplanation> explain_node(const Graph& graph, const NodePtr& node, const std::vector<RewriteRule>& rules,
                                     const DriverOptions& options);

}  // namespace gopt
