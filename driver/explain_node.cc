#include <algorithm>
#include <set>

#include "gopt/confirm_rule.h"
#include "gopt/kernel_costs.h"
#include "gopt/node_explanation.h"
#include "gopt/node_names.h"
#include "planned_graph.h"

namespace gopt {

using namespace driver;

std::string to_string(RuleFate fate) {
  switch (fate) {
    case RuleFate::Applied: return "applied";
    case RuleFate::NotAllowed: return "not allowed";
    case RuleFate::Disabled: return "switched off";
    case RuleFate::DoesNotFit: return "does not fit";
    case RuleFate::NoGain: return "no gain";
    case RuleFate::NotProved: return "not proved";
    case RuleFate::Overtaken: return "overtaken";
  }
  return "";
}

namespace {

std::string operator_of(const Node& node) { return node.opaque ? node.opaque->op_type : op_info(node.op).name; }

class Explanation {
 public:
  Explanation(const Graph& graph, NodePtr node, const std::vector<RewriteRule>& rules, const DriverOptions& options)
      : graph_(graph), node_(std::move(node)), rules_(rules), options_(options) {
    options_.wants_code = false;
  }

  Result<NodeExplanation> run() {
    GOPT_ASSIGN_OR_RETURN(outcome_, optimize_graph(graph_, rules_, options_));
    GOPT_ASSIGN_OR_RETURN(const CostSource source, costs_of_run(graph_, options_, outcome_));
    const auto costs = source.make();
    out_.name = name_of_node(*node_);
    out_.op = operator_of(*node_);
    out_.original = plan_of_node(graph_, node_, options_.target, *costs);
    for (const NodePtr& node : nodes_of_result())
      out_.result.push_back({name_of_node(*node), operator_of(*node),
                             plan_of_node(outcome_.result.graph, node, options_.target, *costs)});
    for (const AppliedRule& applied : outcome_.result.applied)
      if (took_it(applied)) out_.applied.push_back(applied);
    GOPT_RETURN_IF_ERROR(explain_rules(*plan_cost_oracle(options_.target, source.make())));
    out_.original_ms = outcome_.result.before.time_ms;
    out_.result_ms = outcome_.result.after.time_ms;
    out_.stop_reason = outcome_.result.stop_reason;
    out_.notes = outcome_.notes;
    return std::move(out_);
  }

 private:
  bool took_it(const AppliedRule& applied) const {
    return std::find(applied.replaced.begin(), applied.replaced.end(), graph_.id_of(node_)) != applied.replaced.end();
  }
  // Those that run, and those of its own operator first.
  std::vector<NodePtr> nodes_of_result() const {
    const Graph& result = outcome_.result.graph;
    std::vector<NodePtr> nodes;
    for (size_t k = 0; k < outcome_.result.origins.size(); k++) {
      const std::vector<NodeId>& origins = outcome_.result.origins[k];
      const bool is_own = std::find(origins.begin(), origins.end(), graph_.id_of(node_)) != origins.end();
      const NodeId id{static_cast<uint32_t>(k)};
      if (is_own && (!result.depends_on_weights_only(id) || graph_.depends_on_weights_only(graph_.id_of(node_))))
        nodes.push_back(result.node(id));
    }
    std::stable_partition(nodes.begin(), nodes.end(), [&](const NodePtr& node) { return node->op == node_->op; });
    return nodes;
  }

  Status explain_rules(CostOracle& costs) {
    GOPT_ASSIGN_OR_RETURN(MatchesAtNode found, matches_at(graph_, node_, rules_, costs, options_.search));
    out_.taken_by = found.taken_by;
    out_.searched_ms = found.before_ms;
    for (RuleMatch& match : found.rules) {
      RuleAtNode rule{std::move(match)};
      decide_fate(rule);
      out_.rules.push_back(std::move(rule));
    }
    if (found.node) return find_near(name_of_node(*found.node));
    return Unit{};
  }

  Status find_near(const std::string& node) {
    GOPT_ASSIGN_OR_RETURN(NearMisses near, find_near_misses(graph_, rules_, {.node = node}));
    for (NearMiss& miss : near.misses)
      if (is_close(miss.obstacle)) out_.near_misses.push_back(std::move(miss));
    std::stable_sort(out_.near_misses.begin(), out_.near_misses.end(),
                     [](const NearMiss& a, const NearMiss& b) { return a.obstacle < b.obstacle; });
    return Unit{};
  }
  // All of the left side's operators are there; what is held back by marks, or is used elsewhere too, matches.
  static bool is_close(Obstacle obstacle) { return obstacle > Obstacle::OtherUser && obstacle < Obstacle::Rank; }

  // What stands in the way first.
  void decide_fate(RuleAtNode& rule) {
    const auto is_refused = [&](const RefusedRule& refused) { return refused.rule == rule.match.rule; };
    const auto refused = std::find_if(outcome_.refused.begin(), outcome_.refused.end(), is_refused);
    if (was_applied(rule.match)) {
      rule.fate = RuleFate::Applied;
    } else if (refused != outcome_.refused.end()) {
      rule.fate = RuleFate::NotProved;
      rule.why = refused->why;
    } else if (rule.match.is_disabled) {
      rule.fate = RuleFate::Disabled;
    } else if (!(rule.match.not_allowed == RuleMarks{})) {
      rule.fate = RuleFate::NotAllowed;
      rule.why = to_string(rule.match.not_allowed).substr(1);
    } else if (!rule.match.can_apply) {
      rule.fate = RuleFate::DoesNotFit;
    } else if (rule.match.is_gain) {
      decide_fate_of_gain(rule);
    }
  }

  // A rule that gains something and was not applied: where the result had no use for it, nobody has proved it yet.
  void decide_fate_of_gain(RuleAtNode& rule) {
    rule.fate = RuleFate::Overtaken;
    const auto of_name = [&](const RewriteRule& r) { return r.name == rule.match.rule; };
    const Confirmation& proved = confirmer_.confirm(*std::find_if(rules_.begin(), rules_.end(), of_name));
    if (proved.proof) return;
    rule.fate = RuleFate::NotProved;
    rule.why = proved.why_not;
  }

  bool was_applied(const RuleMatch& match) const {
    const std::multiset<std::string> nodes(match.nodes.begin(), match.nodes.end());
    return std::any_of(out_.applied.begin(), out_.applied.end(), [&](const AppliedRule& applied) {
      return applied.rule == match.rule &&
             std::multiset<std::string>(applied.matched_nodes.begin(), applied.matched_nodes.end()) == nodes;
    });
  }

  const Graph& graph_;
  const NodePtr node_;
  const std::vector<RewriteRule>& rules_;
  DriverOptions options_;
  Outcome outcome_;
  RuleConfirmer confirmer_;
  NodeExplanation out_;
};

}  // namespace

Result<NodeExplanation> explain_node(const Graph& graph, const std::string& name, const std::vector<RewriteRule>& rules,
                                     const DriverOptions& options) {
  GOPT_ASSIGN_OR_RETURN(const NodePtr node, find_node(graph, name));
  return explain_node(graph, node, rules, options);
}

Result<NodeExplanation> explain_node(const Graph& graph, const NodePtr& node, const std::vector<RewriteRule>& rules,
                                     const DriverOptions& options) {
  return Explanation(graph, node, rules, options).run();
}

}  // namespace gopt
