#include "searches.h"

#include <algorithm>

#include "gopt/contains.h"
#include "known_searches.h"
#include "onnx_target.h"

namespace gopt::driver {
namespace {

// What kernels that were never timed count of their estimate.
constexpr double kHopeful = 0.5, kCautious = CostSource::kCautious;

// What a result took to find, the search before it included.
void add_work(const OptimizeResult& before, OptimizeResult& result) {
  result.steps += before.steps;
  result.rules_tried += before.rules_tried;
  result.graphs_seen += before.graphs_seen;
  result.seconds += before.seconds;
  result.trajectory = before.trajectory;
  result.trajectory.push_back({result.steps, result.seconds, result.graphs_seen, result.after.time_ms});
  result.stop_reason = before.stop_reason;
  result.refused.insert(result.refused.end(), before.refused.begin(), before.refused.end());
  for (const RuleTrials& trials : before.trials) {
    const auto own = std::find_if(result.trials.begin(), result.trials.end(),
                                  [&](const RuleTrials& known) { return known.rule == trials.rule; });
    if (own != result.trials.end())
      *own += trials;
    else
      result.trials.push_back(trials);
  }
}

}  // namespace

std::set<std::string> applied_rules(const OptimizeResult& result) {
  std::set<std::string> names;
  for (const AppliedRule& a : result.applied) names.insert(a.rule);
  return names;
}

Searches::Searches(const Graph& graph, const std::vector<RewriteRule>& rules, const DriverOptions& options,
                   const CostSource& costs, KernelTiming& kernels, PhaseClock& clock)
    : graph_(graph),
      rules_(rules),
      options_(options),
      costs_(costs),
      kernels_(kernels),
      clock_(clock),
      search_(options.search) {
  if (options.wants_onnx)
    for (std::string& name : rules_beyond_opset(graph, rules)) search_.disabled_rules.push_back(std::move(name));
  search_.confirm = [this](const RewriteRule& rule) { return why_refused(rule); };
}

// A rule is relied on where it is proved here and now, whatever its record says.
std::optional<std::string> Searches::why_refused(const RewriteRule& rule) {
  const PhaseClock::Running running(clock_, "proving rules");
  const Confirmation& found = confirmer_.confirm(rule);
  if (!found.proof) return found.why_not;
  if (proofs_.insert_or_assign(rule.name, *found.proof).second && record_differs(rule, *found.proof))
    notes_.push_back("rule `" + rule.name +
                     "` is proved, but not as its record says; `rulegen verify --write` makes the record anew");
  return std::nullopt;
}

// What was refused once stays out.
void Searches::note_refused(const OptimizeResult& result) {
  for (const RefusedRule& refused : result.refused) {
    search_.disabled_rules.push_back(refused.rule);
    refused_.push_back(refused);
    notes_.push_back("rule `" + refused.rule +
                     "` is not applied, although its record says that it is proved: " + refused.why);
  }
}

// What a runtime's cost is anyway.
bool Searches::compares_sums() const {
  return options_.cost_model == CostModel::Sum && options_.target.kind != TargetKind::Onnx;
}

std::unique_ptr<CostOracle> Searches::oracle(double unknown_factor) const {
  return compares_sums() ? sum_cost_oracle(options_.target, costs_.make(unknown_factor))
                         : make_oracle(options_.target, costs_, unknown_factor);
}

void Searches::tell_costs_of_plans(OptimizeResult& result) const {
  if (!compares_sums()) return;
  const auto oracle = plan_cost_oracle(options_.target, costs_.make());
  result.before = oracle->estimate(graph_);
  result.after = oracle->estimate(result.graph);
}

Result<OptimizeResult> Searches::search_with(const std::vector<RewriteRule>& rules, SearchOptions search,
                                             double unknown_factor, double seconds) {
  const PhaseClock::Running running(clock_, "searching");
  search.budget_seconds = seconds;
  const auto costs = oracle(unknown_factor);
  GOPT_ASSIGN_OR_RETURN(OptimizeResult result, optimize(graph_, rules, *costs, search));
  seconds_left_ = std::max(0.0, seconds_left_ - result.seconds);
  return result;
}

Result<OptimizeResult> Searches::best() {
  const std::string signature = kernels_.cache()
                                    ? search_signature(graph_, options_.target, options_.cost_model, rules_, search_)
                                    : std::string();
  std::optional<OptimizeResult> known = done_again(signature);
  if (!known) {
    GOPT_ASSIGN_OR_RETURN(known, best_by_searching());
    keep_known(signature, *known);
  }
  OptimizeResult best = *std::move(known);
  // Plans are made by what is known of these two graphs alone, in every run alike.
  kernels_.know_of({graph_, best.graph});
  // Of those with a time another may be the best, which has none.
  constexpr int kTries = 5;
  bool goes_on = true;
  for (int attempt = 0; attempt < kTries && goes_on && !is_stopped(); attempt++) {
    const Result<int> chosen = kernels_.measure_chosen(best.graph);
    if (!chosen.ok()) notes_.push_back("some kernels are not timed, but estimated: " + chosen.error().message);
    goes_on = chosen.ok() && *chosen > 0;
  }
  // Also of what the result will be timed against.
  const Result<int> timed = kernels_.measure_groups({best.graph, graph_});
  if (!timed.ok()) notes_.push_back("launches of several kernels are not timed: " + timed.error().message);
  return best;
}

Result<OptimizeResult> Searches::best_by_searching() {
  seconds_left_ = search_.budget_seconds;
  GOPT_ASSIGN_OR_RETURN(OptimizeResult best, search_in_rounds());
  GOPT_RETURN_IF_ERROR(leave_out_idle_rules(best));
  GOPT_RETURN_IF_ERROR(keep_few_nodes(best));
  return best;
}

// Nothing where it is not known or not to be done, or comes to something else; or where it is to be told how a search
// goes.
std::optional<OptimizeResult> Searches::done_again(const std::string& signature) {
  if (signature.empty()) return std::nullopt;
  const auto text = kernels_.cache()->find_search(signature);
  const auto known = text ? parse_known_search(*text) : std::nullopt;
  const auto is_disabled = [&](const std::string& rule) { return contains(search_.disabled_rules, rule); };
  if (!known || search_.improved || std::ranges::any_of(known->rules, is_disabled)) return std::nullopt;
  SearchAmong some = search_among(known->rules, rules_, search_);
  some.options.trail = &known->trail;
  auto done = search_with(some.rules, some.options, kCautious, search_.budget_seconds);
  if (!done.ok() || graph_signature(done->graph, options_.target) != known->result) return std::nullopt;
  OptimizeResult result = *std::move(done);
  result.stop_reason = StopReason::Followed;  // also where no rule was applied
  return result;
}

// What ended for lack of time may have been on a busy machine. Rules that were refused are told of in each run.
void Searches::keep_known(const std::string& signature, const OptimizeResult& result) {
  if (!kernels_.cache_of_here() || !result.trail || is_stopped()) return;
  if (result.stop_reason == StopReason::TimeLimit || !refused_.empty()) return;
  const KnownSearch known{*result.trail, {}, graph_signature(result.graph, options_.target)};
  kernels_.cache_of_here()->put_search(signature, to_text(known));
  const Status saved = kernels_.cache_of_here()->save();
  if (!saved.ok()) notes_.push_back("what was searched is not kept: " + saved.error().message);
}

// Until the last round kernels that were never timed look better than they may be, so that they are found and timed;
// then worse, so that a result stands on measured kernels. All rounds together have the time of one search: each but
// the last takes half of what is left.
Result<OptimizeResult> Searches::search_in_rounds() {
  constexpr int kRounds = 12;
  bool is_all_timed = false;
  for (int round = 0;; round++) {
    const bool is_last =
        is_all_timed || !kernels_.goes_on() || round == kRounds - 1 || is_stopped() || seconds_left_ < 0.1;
    GOPT_ASSIGN_OR_RETURN(OptimizeResult found, search_with(rules_, search_, is_last ? kCautious : kHopeful,
                                                            is_last ? seconds_left_ : seconds_left_ / 2));
    note_refused(found);
    if (is_last) {
      GOPT_ASSIGN_OR_RETURN(found, with_times(std::move(found)));
      const bool is_over = is_all_timed || round == kRounds - 1 || is_stopped() || seconds_left_ < 0.1;
      if (is_over || !kernels_.gives_rest(found.graph)) return found;
    }
    const Result<int> timed = kernels_.measure(found.graph);
    if (is_last ? timed.ok() && *timed == 0 : timed.ok() && *timed > 0 && is_as_estimated(found))
      return with_times(std::move(found));
    if (!timed.ok()) notes_.push_back("some kernels are not timed, but estimated: " + timed.error().message);
    // A result that hopes for what no time is left to measure is not one.
    is_all_timed = !timed.ok() || *timed == 0;
    if (is_all_timed && kernels_.knows(found.graph, kHopeful)) return found;
  }
}

// Whether the result, whose kernels were timed since, takes as long as the search took it to, so that another would end
// there again; its costs are by those times then.
bool Searches::is_as_estimated(OptimizeResult& result) const {
  constexpr double kNear = 1.01;
  const auto costs = oracle(kCautious);
  const Cost after = costs->estimate(result.graph);
  if (after.time_ms > kNear * result.after.time_ms) return false;
  result.after = after;
  result.before = costs->estimate(graph_);
  return true;
}

// Kernels of the result that were not timed may be far from their estimates: they are timed, and the search is made
// again, until it rests on times or no more can be had, unless they take what they were estimated to.
Result<OptimizeResult> Searches::with_times(OptimizeResult found) {
  constexpr int kTries = 3;
  for (int attempt = 0; attempt < kTries && !is_stopped(); attempt++) {
    const Result<int> timed = kernels_.measure_chosen(found.graph);
    if (!timed.ok() || *timed == 0 || is_as_estimated(found)) break;
    GOPT_ASSIGN_OR_RETURN(found,
                          search_with(rules_, search_, kCautious, std::max(seconds_left_, search_.budget_seconds / 4)));
    note_refused(found);
  }
  return found;
}

// Without each rule that was applied, in turn, by a search with the others that were: what gains next to nothing beside
// them only makes the result harder to read, and rests on the last digits of its costs. In the time that the search
// left, and at most half of what it took, or some seconds.
Status Searches::leave_out_idle_rules(OptimizeResult& best) {
  constexpr size_t kMostRules = 12;
  constexpr double kLeastSeconds = 5;
  const double spent = search_.budget_seconds - seconds_left_;
  seconds_left_ = std::min(seconds_left_, std::max(kLeastSeconds, spent / 2));
  const std::set<std::string> applied = applied_rules(best);
  if (applied.size() > kMostRules || is_stopped()) return Unit{};
  for (const std::string& rule : applied) {
    if (!applied_rules(best).contains(rule)) continue;
    if (seconds_left_ <= 0) break;
    GOPT_ASSIGN_OR_RETURN(OptimizeResult result, search_without(rule, best, seconds_left_));
    const bool is_cut_short = result.stop_reason == StopReason::TimeLimit || is_stopped();
    if (is_cut_short || pays(options_.target, best.after, result.after)) continue;
    add_work(best, result);
    best = std::move(result);
  }
  return Unit{};
}

// An ONNX file has no more nodes than before, unless all of its rules together pay for them.
Status Searches::keep_few_nodes(OptimizeResult& best) {
  if (options_.target.kind != TargetKind::Onnx || best.after.kernels <= best.before.kernels) return Unit{};
  if (pays(options_.target, best.after, best.before)) return Unit{};
  GOPT_ASSIGN_OR_RETURN(best, passes_alone());
  return Unit{};
}

Result<OptimizeResult> Searches::passes_alone() {
  SearchOptions passes = search_;
  passes.search = SearchKind::None;
  return search_with(rules_, passes, 1, 0);
}

Result<OptimizeResult> Searches::search_without(const std::string& rule, const OptimizeResult& result, double seconds) {
  std::set<std::string> others = applied_rules(result);
  others.erase(rule);
  const SearchAmong some = search_among({others.begin(), others.end()}, rules_, search_);
  return search_with(some.rules, some.options, kCautious, seconds);
}

Result<OptimizeResult> Searches::without(const std::string& rule, const OptimizeResult& result) {
  return search_without(rule, result, search_.budget_seconds / 4);
}

std::vector<std::string> Searches::most_promising_first(const OptimizeResult& result) {
  std::map<std::string, double> gains;
  for (const AppliedRule& a : result.applied) gains[a.rule] += a.cost_before_ms - a.cost_after_ms;
  std::vector<std::string> names;
  for (const auto& [rule, gain] : gains) names.push_back(rule);
  std::ranges::stable_sort(names, std::ranges::greater{}, [&](const std::string& rule) { return gains[rule]; });
  return names;
}

Result<GuiltyRewrites> Searches::what_differs(const OptimizeResult& result,
                                              const std::function<Result<bool>(const OptimizeResult&)>& differs) {
  constexpr int kMostSearches = 10;
  const std::set<std::string> applied = applied_rules(result);
  const GuiltyRewrites all{.rules = {applied.begin(), applied.end()}, .is_smallest = false};
  if (is_stopped()) return all;
  SearchOptions search = search_;
  search.budget_seconds = search_.budget_seconds / kMostSearches;
  const auto costs = oracle(kCautious);
  GOPT_ASSIGN_OR_RETURN(const GuiltyRewrites found,
                        find_guilty(graph_, what_made(result), rules_, *costs, search, differs, kMostSearches));
  return found.empty() ? all : found;
}

void Searches::leave_out(const GuiltyRewrites& guilty) {
  search_.disabled_rules.insert(search_.disabled_rules.end(), guilty.rules.begin(), guilty.rules.end());
  search_.disabled_passes.insert(search_.disabled_passes.end(), guilty.passes.begin(), guilty.passes.end());
}

}  // namespace gopt::driver
