#include "gopt/rule_matches.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "gopt/contains.h"
#include "matching/match.h"
#include "matching/rewrite.h"
#include "matching/rule_selection.h"
#include "passes/passes.h"
#include "search/rewrite_cost.h"

namespace gopt::optimizer {
namespace {

// Rewrites of one rule at one node that are priced; a rule may match in many ways.
constexpr size_t kMostOfARule = 8;

// Patterns of all rules, whatever their marks, that otherwise are those of a search with these options.
Result<std::vector<Pattern>> patterns_of(const std::vector<RewriteRule>& rules, const SearchOptions& options,
                                         const Graph& graph) {
  SearchOptions all;
  all.allowed_marks = options.allowed_marks;
  for (const RewriteRule& rule : rules) all.enabled_rules.push_back(rule.name);
  GOPT_ASSIGN_OR_RETURN(std::vector<Pattern> patterns, select_patterns(rules, all, graph));
  for (Pattern& pattern : patterns)
    pattern.keeps_compensation =
        !options.allowed_marks.drops_rounding && !contains(options.enabled_rules, pattern.rule_name);
  return patterns;
}

// What has to be allowed for a rule with these marks.
RuleMarks lacking(const RuleMarks& marks, const RuleMarks& allowed) {
  RuleMarks not_allowed;
  for (const MarkInfo& mark : all_marks())
    not_allowed.*(mark.flag) = !mark.is_safe && marks.*(mark.flag) && !(allowed.*(mark.flag));
  return not_allowed;
}

class Matcher {
 public:
  Matcher(MatchesAtNode& out, CostOracle& costs, const SearchOptions& options)
      : out_(out), costs_(costs), options_(options), index_(out.graph), id_(out.graph.id_of(out.node)) {}

  void run(const std::vector<RewriteRule>& rules, const std::vector<Pattern>& patterns) {
    out_.before_ms = costs_.estimate(out_.graph).time_ms;
    std::map<std::string, RuleMarks> marks;
    for (const RewriteRule& rule : rules) marks.emplace(rule.name, rule.marks);
    for (const Pattern& pattern : patterns) {
      const MatchRegion region = region_around(out_.graph, {id_}, pattern.depth);
      size_t priced = 0;
      for (const Binding& binding : find_bindings(index_, pattern, &region)) {
        if (std::find(binding.nodes.begin(), binding.nodes.end(), id_) == binding.nodes.end()) continue;
        if (++priced > kMostOfARule) break;
        add(binding, marks.at(pattern.rule_name));
      }
    }
    std::stable_sort(out_.rules.begin(), out_.rules.end(), [](const RuleMatch& a, const RuleMatch& b) {
      return std::pair(!a.can_apply, -a.gain_ms) < std::pair(!b.can_apply, -b.gain_ms);
    });
  }

 private:
  void add(const Binding& binding, const RuleMarks& marks) {
    RuleMatch match{binding.pattern->rule_name};
    const bool is_named = contains(options_.enabled_rules, match.rule);
    if (!is_named) match.not_allowed = lacking(marks, options_.allowed_marks);
    match.is_disabled = contains(options_.disabled_rules, match.rule) || (!options_.enabled_rules.empty() && !is_named);
    match.nodes = matched_names(out_.graph, binding);
    const auto difference = price_binding(out_.graph, binding, costs_.uncertainty(),
                                          [this](const Graph& part) { return estimate_part(part); });
    const auto rewritten = apply_bindings(out_.graph, {binding});
    // In another order of its operands it is the same rewrite.
    if (rewritten.ok() && !seen_.emplace(match.rule, rewritten->graph.hash()).second) return;
    match.can_apply = difference && rewritten.ok() && !rewritten->applied.empty();
    if (match.can_apply) {
      match.after_ms = costs_.estimate(rewritten->graph).time_ms;
      match.gain_ms = difference->gain_ms;
      match.uncertain_ms = difference->uncertain_ms;
      match.is_gain = difference->is_gain();
    }
    out_.rules.push_back(std::move(match));
  }

  Cost estimate_part(const Graph& part) {
    const auto [entry, is_new] = cost_of_part_.try_emplace(part.hash());
    if (is_new) entry->second = costs_.estimate_part(part);
    return entry->second;
  }

  MatchesAtNode& out_;
  CostOracle& costs_;
  const SearchOptions& options_;
  const MatchIndex index_;
  const NodeId id_;
  std::set<std::pair<std::string, Hash128>> seen_;
  std::unordered_map<Hash128, Cost, HashOfHash128> cost_of_part_;
};

// What gives the node's values after a pass; null where that is no node of its own: a constant, or what it copied.
NodePtr after_pass(const NodePtr& node, const ValueMap& became) {
  const auto now = became.find({node, 0});
  if (now == became.end() || now->second.node->op != node->op) return nullptr;
  for (const Value& input : node->inputs) {
    const auto below = became.find(input);
    if (below != became.end() && below->second == now->second) return nullptr;
  }
  return now->second.node;
}

// The graph after a pass, with the node where it is now.
void run_pass(const Pass& pass, MatchesAtNode& out) {
  const Replacements replacements = pass.run(out.graph);
  if (replacements.empty()) return;
  ValueMap became;
  out.graph = replace_each(out.graph, replacements, &became);
  if (!out.node) return;
  out.node = after_pass(out.node, became);
  if (out.node && !out.graph.contains(out.node)) out.node = nullptr;
  if (!out.node) out.taken_by = pass.name;
}

}  // namespace
}  // namespace gopt::optimizer

namespace gopt {

using namespace optimizer;

Result<MatchesAtNode> matches_at(const Graph& graph, const NodePtr& node, const std::vector<RewriteRule>& rules,
                                 CostOracle& costs, const SearchOptions& options) {
  GOPT_RETURN_IF_ERROR(check_pass_names(options.disabled_passes));
  MatchesAtNode out{graph, node};
  for (const Pass& pass : passes())
    if (!contains(options.disabled_passes, pass.name)) run_pass(pass, out);
  if (!out.node) return out;
  GOPT_ASSIGN_OR_RETURN(const std::vector<Pattern> patterns, patterns_of(rules, options, graph));
  Matcher(out, costs, options).run(rules, patterns);
  return out;
}

}  // namespace gopt
