// One optimization, step by step: costs, searches until a result agrees with the original, then the plan.
#include "gopt/driver.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "check.h"
#include "gopt/confirm_rule.h"
#include "gopt/statistics.h"
#include "measured_costs.h"

namespace gopt {

using namespace driver;

namespace {

std::string names_of(const std::set<std::string>& rules) {
  std::string text;
  for (const std::string& rule : rules) text += (text.empty() ? "`" : ", `") + rule + "`";
  return text;
}

bool is_rewritten(const PlannedGraph& original, const PlannedGraph& result) {
  return !result.graph().same_as(original.graph()) && result.graph().hash() != original.graph().hash();
}

class Optimization {
 public:
  Optimization(const Graph& graph, const std::vector<RewriteRule>& rules, const DriverOptions& options)
      : rules_(rules), options_(options), search_(options.search), original_(graph, options.target, costs_) {
    search_.confirm = [this](const RewriteRule& rule) { return why_refused(rule); };
  }

  Result<Outcome> run() {
    GOPT_RETURN_IF_ERROR(prepare_costs());
    GOPT_RETURN_IF_ERROR(search_until_equal());
    if (options_.wants_code && options_.times_code) time_both();
    if (options_.wants_code) {
      GOPT_ASSIGN_OR_RETURN(const Plan* plan, result().plan());
      outcome_.plan = *plan;
    }
    return std::move(outcome_);
  }

 private:
  static constexpr double kMeasuringSeconds = 60;
  static constexpr double kHopeful = 0.5, kCautious = 2;  // what kernels that were never timed count of their estimate

  PlannedGraph& result() { return result_ ? *result_ : original_; }

  // With measured costs: the original's kernels, measured, calibrate the rest. Where kernels cannot be built or the
  // graph cannot be planned, costs are analytic.
  Status prepare_costs() {
    if (!options_.measured_costs) return Unit{};
    GOPT_ASSIGN_OR_RETURN(KernelCache cache, KernelCache::load(options_.cache, machine_name()));
    costs_.cache = std::make_shared<KernelCache>(std::move(cache));
    const Result<int> timed = measure(original_.graph());
    if (!timed.ok()) {
      costs_.cache.reset();
      costs_.known.clear();
      outcome_.notes.push_back("kernels are not timed, so that costs are estimates: " + timed.error().message);
    }
    outcome_.has_measured_costs = timed.ok();
    return Unit{};
  }

  // Kernels that a plan of the graph may choose, those that the cache lacks timed.
  Result<int> measure(const Graph& graph) {
    GOPT_ASSIGN_OR_RETURN(const std::vector<KernelSpec> specs, admitted_kernels(graph, options_.target));
    MeasureOptions options{.threads = options_.target.threads, .stop = search_.stop, .progress = search_.progress};
    options.budget_seconds = std::max(0.0, kMeasuringSeconds - measuring_seconds_);
    const auto start = std::chrono::steady_clock::now();
    GOPT_ASSIGN_OR_RETURN(const int timed, measure_kernels(specs, *costs_.cache, options));
    measuring_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    outcome_.kernels_timed += timed;
    outcome_.timing_seconds = measuring_seconds_;
    costs_.known = specs;
    return timed;
  }

  // A rule is relied on where it is proved here and now, whatever its record says.
  std::optional<std::string> why_refused(const RewriteRule& rule) {
    const Confirmation& found = confirmer_.confirm(rule);
    if (!found.proof) return found.why_not;
    if (outcome_.proofs.insert_or_assign(rule.name, *found.proof).second && record_differs(rule, *found.proof))
      outcome_.notes.push_back(
          "rule `" + rule.name +
          "` is proved, but not as its record says; `rulegen verify --write` makes the record anew");
    return std::nullopt;
  }

  // What was refused once stays out.
  void note_refused() {
    for (const RefusedRule& refused : outcome_.result.refused) {
      search_.disabled_rules.push_back(refused.rule);
      outcome_.refused.push_back(refused);
      outcome_.notes.push_back("rule `" + refused.rule +
                               "` is not applied, although its record says that it is proved: " + refused.why);
    }
  }

  // One search; with measured costs, again as long as its result has kernels that were never timed. Until the last
  // time these look better than they may be, so that they are found and timed; then worse, so that a result stands on
  // measured kernels.
  Status search_once() {
    constexpr int kRounds = 6;
    for (int round = 0; round < kRounds; round++) {
      const bool is_last = round == kRounds - 1 || is_stopped() || measuring_seconds_ >= kMeasuringSeconds;
      auto oracle = plan_cost_oracle(options_.target, costs_.make(is_last ? kCautious : kHopeful));
      GOPT_ASSIGN_OR_RETURN(outcome_.result, optimize(original_.graph(), rules_, *oracle, search_));
      note_refused();
      if (!costs_.cache || is_last) break;
      GOPT_ASSIGN_OR_RETURN(const int timed, measure(outcome_.result.graph));
      if (timed == 0) break;
    }
    GOPT_RETURN_IF_ERROR(leave_out_idle_rules());
    result_.emplace(outcome_.result.graph, options_.target, costs_);
    return Unit{};
  }

  // Without each rule that was applied, in turn: what gains next to nothing beside the others only makes the result
  // harder to read, and rests on the last digits of its costs.
  Status leave_out_idle_rules() {
    constexpr double kNextToNothing = 0.005;
    constexpr size_t kMostRules = 12;
    const std::set<std::string> applied = applied_rules();
    if (applied.size() > kMostRules || is_stopped()) return Unit{};
    SearchOptions without = search_;
    for (const std::string& rule : applied) {
      if (!applied_rules().contains(rule)) continue;
      without.disabled_rules.push_back(rule);
      auto oracle = plan_cost_oracle(options_.target, costs_.make(kCautious));
      GOPT_ASSIGN_OR_RETURN(OptimizeResult result, optimize(original_.graph(), rules_, *oracle, without));
      const double gain_of_rule = result.after.time_ms / outcome_.result.after.time_ms - 1;
      const bool is_simpler_with = outcome_.result.after.operations < result.after.operations;
      if (is_stopped() || gain_of_rule > kNextToNothing || is_simpler_with)
        without.disabled_rules.pop_back();
      else
        outcome_.result = std::move(result);
    }
    return Unit{};
  }
  std::set<std::string> applied_rules() const {
    std::set<std::string> names;
    for (const AppliedRule& a : outcome_.result.applied) names.insert(a.rule);
    return names;
  }
  bool is_stopped() const { return search_.stop && *search_.stop; }

  // What is as it was computes what it did.
  CheckReport check() {
    if (!is_rewritten(original_, result())) return {.checked = true, .passed = true, .engine = "none"};
    return check_equal(original_, result(), options_.check, outcome_.result.before.operations, options_.seed + 1);
  }

  // A search whose result agrees with the original and can be written. One that does not is not kept: the rules that it
  // applied are left out and the search is made again; in the end the model stays as it was.
  Status search_until_equal() {
    constexpr int kTries = 4;
    for (int attempt = 0; attempt < kTries; attempt++) {
      GOPT_RETURN_IF_ERROR(search_once());
      if (const auto why = why_not_writable()) {
        outcome_.notes.push_back(*why + "; the unrewritten model is kept");
        break;
      }
      outcome_.check = check();
      if (!outcome_.check.checked && options_.check.engine != CheckEngine::Off && !outcome_.result.applied.empty())
        outcome_.notes.push_back("the result is not checked: " + outcome_.check.why_not);
      if (!outcome_.check.checked || outcome_.check.passed) return Unit{};
      const std::set<std::string> applied = applied_rules();
      const std::string on = "the optimized model does not agree with the original on " + outcome_.check.draws.back() +
                             " random inputs (--rtol and --atol say how closely it must)";
      if (applied.empty()) {
        outcome_.notes.push_back(on + ": it is left as it was");
        break;
      }
      outcome_.notes.push_back(on + ": it is searched again without " + names_of(applied));
      search_.disabled_rules.insert(search_.disabled_rules.end(), applied.begin(), applied.end());
    }
    keep_original();
    outcome_.check = check();
    return Unit{};
  }

  std::optional<std::string> why_not_writable() {
    if (!options_.is_writable || !is_rewritten(original_, result())) return std::nullopt;
    const Status status = options_.is_writable(result().graph());
    return status.ok() ? std::nullopt : std::optional(status.error().message);
  }

  void keep_original() {
    result_.reset();
    outcome_.result.graph = original_.graph();
    outcome_.result.after = outcome_.result.before;
    outcome_.result.applied.clear();
  }

  // Original and result, timed in turns on this machine; the faster one is kept.
  void time_both() {
    if (options_.target.kind != TargetKind::Cpu) {
      outcome_.latency_note = "not measured: CUDA code is timed on a machine with a GPU";
      return;
    }
    if (!is_rewritten(original_, result())) return;
    auto latency = measure();
    if (!latency.ok()) {
      outcome_.latency_note = "not measured: " + latency.error().message;
      return;
    }
    outcome_.latency = *latency;
    constexpr double kNoise = 1.01;  // medians of interleaved runs repeat within one in a hundred
    if (latency->speedup >= kNoise) return;
    outcome_.latency_note = "the rewritten model was not faster; the unrewritten one is what was kept";
    keep_original();
    outcome_.check = check();
  }

  Result<MeasuredLatency> measure() {
    GOPT_ASSIGN_OR_RETURN(RunnableModel * a, original_.code());
    GOPT_ASSIGN_OR_RETURN(RunnableModel * b, result().code());
    GOPT_ASSIGN_OR_RETURN(auto inputs, a->draw(options_.seed));
    GOPT_ASSIGN_OR_RETURN(auto warm_a, a->time(inputs, 2, 1));
    GOPT_ASSIGN_OR_RETURN(auto warm_b, b->time(inputs, 2, 1));
    std::vector<double> ta, tb, ratios;
    for (int k = 0; k < options_.runs; k++) {
      GOPT_ASSIGN_OR_RETURN(auto one, a->time(inputs, 0, 1));
      GOPT_ASSIGN_OR_RETURN(auto other, b->time(inputs, 0, 1));
      ta.push_back(one[0]);
      tb.push_back(other[0]);
      ratios.push_back(one[0] / other[0]);
    }
    GOPT_ASSIGN_OR_RETURN(const Plan* plan, result().plan());
    return MeasuredLatency{median(ta), median(tb), median(ratios), print_plan(*plan)};
  }

  const std::vector<RewriteRule>& rules_;
  const DriverOptions& options_;
  SearchOptions search_;
  CostSource costs_;
  PlannedGraph original_;
  std::optional<PlannedGraph> result_;
  RuleConfirmer confirmer_;
  Outcome outcome_;
  double measuring_seconds_ = 0;
};

}  // namespace

Result<Outcome> optimize_graph(const Graph& graph, const std::vector<RewriteRule>& rules,
                               const DriverOptions& options) {
  return Optimization(graph, rules, options).run();
}

}  // namespace gopt
