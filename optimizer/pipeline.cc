// The optimizer as straight text: what happens to a graph, in order. Each pass has its timer, its switch and its check.
#include <algorithm>
#include <set>

#include "gopt/clock.h"
#include "gopt/optimizer.h"
#include "matching/rule_selection.h"
#include "passes/not_dearer.h"
#include "passes/passes.h"
#include "search/folding_costs.h"
#include "search/windows.h"

namespace gopt {
namespace {

using namespace optimizer;

// Rules of the trace that `confirm` refuses. Rules of one name are all asked about.
std::vector<RefusedRule> refused_rules(const std::vector<AppliedRule>& applied, const std::vector<RewriteRule>& rules,
                                       const SearchOptions& options) {
  std::vector<RefusedRule> refused;
  if (!options.confirm) return refused;
  std::set<std::string> names;
  for (const AppliedRule& a : applied) names.insert(a.rule);
  for (const RewriteRule& rule : rules) {
    if (!names.count(rule.name)) continue;
    if (auto why = options.confirm(rule)) refused.push_back({rule.name, *std::move(why)});
  }
  return refused;
}

class Pipeline {
 public:
  Pipeline(OptimizeResult& result, CostOracle& costs, const SearchOptions& options)
      : result_(result),
        costs_(costs),
        disabled_(options.disabled_passes),
        trail_(options.trail),
        lineage_(result.graph) {}

  void run(const Pass& pass) {
    const std::string name = pass.name;
    if (std::find(disabled_.begin(), disabled_.end(), name) != disabled_.end()) return;
    const auto start = Clock::now();
    RewriteStep step{result_.graph, {}, {}, {}};
    Replacements replacements = pass.run(step.before);
    if (pass.price == PassPrice::NotDearer) replacements = kept_of(replacements, name);
    step.after = replace_each(step.before, replacements, &step.became);
    const bool changed = !step.after.same_as(step.before);
    if (changed) lineage_.follow(step);
    result_.graph = step.after;
    check(name);
    result_.passes.push_back({name, changed, seconds_since(start)});
  }

  void search(Found found, Clock::time_point start) {
    const bool changed = !found.graph.same_as(result_.graph);
    result_.graph = std::move(found.graph);
    result_.applied = std::move(found.applied);
    result_.trajectory = std::move(found.trajectory);
    for (const RewriteStep& step : found.rewrites) lineage_.follow(step);
    if (found.trail) {
      found.trail->passes = std::move(choices_);
      result_.trail = std::move(found.trail);
      choices_.clear();
    }
    result_.stop_reason = found.stop_reason;
    result_.steps = found.steps;
    result_.rules_tried = found.rules_tried;
    result_.graphs_seen = found.graphs_seen;
    for (auto& [rule, trials] : found.trials) result_.trials.push_back(std::move(trials));
    check("search");
    result_.passes.push_back({"search", changed, seconds_since(start)});
  }

  // Passes after the search.
  void finish_trail() {
    if (!result_.trail) return;
    std::ranges::move(choices_, std::back_inserter(result_.trail->passes));
  }

  void trace_nodes() {
    result_.origins = lineage_.origins();
    for (size_t use = 0; use < result_.applied.size(); use++) {
      result_.applied[use].replaced = lineage_.replaced(use);
      result_.applied[use].made = lineage_.made(use);
    }
  }

 private:
  void check(const std::string& name) const {
    const Status status = validate(result_.graph);
    GOPT_CHECK(status.ok(), "after pass " + name + ": " + status.error().message);
  }

  // Those that make the graph no dearer; or those that did, where that is known.
  Replacements kept_of(const Replacements& replacements, const std::string& pass) {
    const size_t run = runs_++;
    const bool is_known = trail_ && run < trail_->passes.size() && trail_->passes[run].pass == pass;
    PassChoice choice{pass, is_known ? trail_->passes[run].kept : std::vector<uint32_t>()};
    if (!is_known) choice.kept = not_dearer(result_.graph, replacements, costs_);
    std::erase_if(choice.kept, [&](uint32_t place) { return place >= replacements.size(); });
    Replacements kept;
    for (const uint32_t place : choice.kept) kept.push_back(replacements[place]);
    choices_.push_back(std::move(choice));
    return kept;
  }

  OptimizeResult& result_;
  CostOracle& costs_;
  const std::vector<std::string>& disabled_;
  const SearchTrail* trail_;
  std::vector<PassChoice> choices_;  // that are not in the result's trail yet
  size_t runs_ = 0;                  // of passes that costs decide about
  Lineage lineage_;
};

// Searches until the trace has no rule that is refused: what was found with such a rule's help is not kept. Rules are
// selected for the operators of `original`, which the passes have not touched. Nothing where there is nothing to
// search with.
Result<std::optional<Found>> search_with_confirmed_rules(const Graph& graph, const Graph& original,
                                                         const std::vector<RewriteRule>& rules, CostOracle& costs,
                                                         SearchOptions options, std::vector<RefusedRule>& refused) {
  FoldingCosts affordable(costs, graph);
  while (true) {
    GOPT_ASSIGN_OR_RETURN(const PatternSet patterns, PatternSet::make(rules, options, max_rank(original)));
    if (options.search == SearchKind::None || patterns.empty()) return std::optional<Found>();
    Found found = search_in_windows(graph, patterns, affordable, options);
    if (options.trail && !found.trail) return Error{"a trail that does not fit the graph and the rules"};
    if (options.progress)
      for (const std::string& note : patterns.notes()) options.progress(note);
    const std::vector<RefusedRule> more = refused_rules(found.applied, rules, options);
    if (more.empty()) return std::optional<Found>(std::move(found));
    for (const RefusedRule& rule : more) options.disabled_rules.push_back(rule.rule);
    refused.insert(refused.end(), more.begin(), more.end());
  }
}

}  // namespace

std::span<const optimizer::Pass> optimizer::passes() {
  static constexpr Pass rows[] = {
#define GOPT_PASS(function, name, when, price) {name, function, PassTime::when, PassPrice::price},
#include "passes/passes.def"
#undef GOPT_PASS
  };
  return rows;
}

const std::vector<std::string>& pass_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Pass& pass : passes()) all.emplace_back(pass.name);
    return all;
  }();
  return names;
}

Result<OptimizeResult> optimize(const Graph& graph, const std::vector<RewriteRule>& rules, CostOracle& costs,
                                const SearchOptions& options) {
  const auto start = Clock::now();
  GOPT_RETURN_IF_ERROR(check_pass_names(options.disabled_passes));
  OptimizeResult result;
  result.graph = graph;
  result.before = costs.estimate(graph);
  Pipeline pipeline(result, costs, options);
  for (const Pass& pass : passes()) pipeline.run(pass);
  const auto search_start = Clock::now();
  GOPT_ASSIGN_OR_RETURN(std::optional<Found> found,
                        search_with_confirmed_rules(result.graph, graph, rules, costs, options, result.refused));
  result.stop_reason = StopReason::Off;
  if (found) pipeline.search(*std::move(found), search_start);
  for (const Pass& pass : passes())
    if (pass.when == PassTime::BeforeAndAfter) pipeline.run(pass);
  pipeline.finish_trail();
  pipeline.trace_nodes();
  result.after = costs.estimate(result.graph);
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace gopt
