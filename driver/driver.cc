// One optimization, step by step: costs, searches until a result agrees with the original, then the plan.
#include "gopt/driver.h"

#include <algorithm>
#include <set>

#include "check.h"
#include "code_timing.h"
#include "gopt/confirm_rule.h"
#include "guilty_rewrites.h"
#include "judge.h"
#include "kernel_timing.h"
#include "machine_speed.h"
#include "onnx_target.h"
#include "time_in_turns.h"

namespace gopt {

using namespace driver;

namespace {

std::string text_of(const GuiltyRewrites& guilty) {
  std::string text;
  for (const auto* names : {&guilty.rules, &guilty.passes})
    for (const std::string& name : *names) text += (text.empty() ? "`" : ", `") + name + "`";
  if (guilty.searches == 0) return text;
  return text + ", which alone make" + (guilty.rules.size() + guilty.passes.size() == 1 ? "s" : "") +
         " a difference (" + std::to_string(guilty.searches) + " searches)";
}

void add_names(const std::vector<std::string>& names, std::vector<std::string>& to) {
  to.insert(to.end(), names.begin(), names.end());
}

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

bool is_rewritten(const PlannedGraph& original, const PlannedGraph& result) {
  return !result.graph().same_as(original.graph()) && result.graph().hash() != original.graph().hash();
}

class Optimization {
 public:
  Optimization(const Graph& graph, const std::vector<RewriteRule>& rules, const DriverOptions& options)
      : rules_(rules),
        options_(options),
        search_(options.search),
        original_(graph, options.target, costs_),
        kernels_(options, costs_, clock_) {
    search_.confirm = [this](const RewriteRule& rule) { return why_refused(rule); };
  }

  Result<Outcome> run() {
    GOPT_RETURN_IF_ERROR(prepare_costs());
    GOPT_RETURN_IF_ERROR(search_until_equal());
    if (options_.check.engine == CheckEngine::Files && outcome_.check.checked && !outcome_.check.passed)
      return Error{options_.check.original_file + ": what gopt would write of it, unrewritten, does not compute in " +
                   outcome_.check.engine + " what the file does, on " + outcome_.check.draws.back() +
                   " random inputs; nothing is written"};
    if (options_.timer && options_.target.kind == TargetKind::Onnx) GOPT_RETURN_IF_ERROR(judge_result());
    if (options_.wants_code && options_.times_code) {
      time_both();
      time_plan();
    }
    if (options_.wants_code) {
      GOPT_ASSIGN_OR_RETURN(const Plan* plan, result().plan());
      outcome_.plan = *plan;
    }
    if (options_.wants_plans) add_plans();
    tell_costs_of_plans();
    outcome_.roofline = roofline_of(options_.target, machine_roofline());
    outcome_.phases = clock_.phases();
    outcome_.kernels_timed = kernels_.timed();
    outcome_.timing_seconds = kernels_.seconds();
    return std::move(outcome_);
  }

 private:
  static constexpr double kHopeful = 0.5, kCautious = 2;  // what kernels that were never timed count of their estimate

  using Running = PhaseClock::Running;

  PlannedGraph& result() { return result_ ? *result_ : original_; }

  Status prepare_costs() {
    GOPT_ASSIGN_OR_RETURN(const PreparedCosts prepared, kernels_.prepare(original_.graph()));
    add_names(prepared.notes, outcome_.notes);
    outcome_.has_measured_costs = prepared.has_measured_costs;
    outcome_.machine = prepared.machine;
    return Unit{};
  }

  // A rule is relied on where it is proved here and now, whatever its record says.
  std::optional<std::string> why_refused(const RewriteRule& rule) {
    const Running running(clock_, "proving rules");
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
  // measured kernels. All rounds together have the time of one search: each but the last takes half of what is left.
  Status search_once() {
    constexpr int kRounds = 6;
    seconds_left_ = search_.budget_seconds;
    for (int round = 0; round < kRounds; round++) {
      const bool is_last = !kernels_.goes_on() || round == kRounds - 1 || is_stopped() || seconds_left_ < 0.1;
      GOPT_ASSIGN_OR_RETURN(outcome_.result, search_with(search_, is_last ? kCautious : kHopeful,
                                                         is_last ? seconds_left_ : seconds_left_ / 2));
      note_refused();
      if (is_last) break;
      const Result<int> timed = kernels_.measure(outcome_.result.graph);
      if (!timed.ok()) outcome_.notes.push_back("some kernels are not timed, but estimated: " + timed.error().message);
      if (!timed.ok() || *timed == 0) break;
    }
    GOPT_RETURN_IF_ERROR(leave_out_idle_rules());
    GOPT_RETURN_IF_ERROR(keep_few_nodes());
    result_.emplace(outcome_.result.graph, options_.target, costs_);
    return Unit{};
  }

  Result<OptimizeResult> search_with(const SearchOptions& search, double unknown_factor, double seconds) {
    return search_with(rules_, search, unknown_factor, seconds);
  }
  Result<OptimizeResult> search_with(const std::vector<RewriteRule>& rules, SearchOptions search, double unknown_factor,
                                     double seconds) {
    const Running running(clock_, "searching");
    search.budget_seconds = seconds;
    const auto oracle = oracle_of_search(unknown_factor);
    GOPT_ASSIGN_OR_RETURN(OptimizeResult result, optimize(original_.graph(), rules, *oracle, search));
    seconds_left_ = std::max(0.0, seconds_left_ - result.seconds);
    return result;
  }

  // What a runtime's cost is anyway.
  bool compares_sums() const {
    return options_.cost_model == CostModel::Sum && options_.target.kind != TargetKind::Onnx;
  }
  std::unique_ptr<CostOracle> oracle_of_search(double unknown_factor) const {
    return compares_sums() ? sum_cost_oracle(options_.target, costs_.make(unknown_factor))
                           : make_oracle(options_.target, costs_, unknown_factor);
  }

  // Whatever the search went by, a result is told by its plan.
  void tell_costs_of_plans() {
    if (!compares_sums()) return;
    const auto oracle = plan_cost_oracle(options_.target, costs_.make());
    outcome_.result.before = oracle->estimate(original_.graph());
    outcome_.result.after = oracle->estimate(outcome_.result.graph);
  }

  // Without each rule that was applied, in turn, by a search with the others that were: what gains next to nothing
  // beside them only makes the result harder to read, and rests on the last digits of its costs. In the time that the
  // search left.
  Status leave_out_idle_rules() {
    constexpr size_t kMostRules = 12;
    const std::set<std::string> applied = applied_rules();
    if (applied.size() > kMostRules || is_stopped()) return Unit{};
    for (const std::string& rule : applied) {
      std::set<std::string> others = applied_rules();
      if (others.erase(rule) == 0) continue;
      if (seconds_left_ <= 0) break;
      const SearchAmong some = search_among({others.begin(), others.end()}, rules_, search_);
      GOPT_ASSIGN_OR_RETURN(OptimizeResult result, search_with(some.rules, some.options, kCautious, seconds_left_));
      const bool is_cut_short = result.stop_reason == StopReason::TimeLimit || is_stopped();
      if (is_cut_short || pays(options_.target, outcome_.result.after, result.after)) continue;
      add_work(outcome_.result, result);
      outcome_.result = std::move(result);
    }
    return Unit{};
  }
  // An ONNX file has no more nodes than before, unless all of its rules together pay for them.
  Status keep_few_nodes() {
    const Cost &before = outcome_.result.before, &after = outcome_.result.after;
    if (options_.target.kind != TargetKind::Onnx || after.kernels <= before.kernels) return Unit{};
    if (pays(options_.target, after, before)) return Unit{};
    GOPT_ASSIGN_OR_RETURN(outcome_.result, passes_alone());
    return Unit{};
  }
  Result<OptimizeResult> passes_alone() {
    SearchOptions passes = search_;
    passes.search = SearchKind::None;
    return search_with(passes, 1, 0);
  }

  // The result by the times of its runtime, against the original and what is found without each of its rules.
  Status judge_result() {
    const Running running(clock_, "timing in the runtime");
    GOPT_ASSIGN_OR_RETURN(const OptimizeResult passes, passes_alone());
    std::vector<Candidate> others;
    for (const std::string& rule : applied_rules())
      others.push_back([this, rule]() -> Result<std::optional<OptimizeResult>> {
        SearchOptions without = search_;
        without.disabled_rules.push_back(rule);
        GOPT_ASSIGN_OR_RETURN(OptimizeResult result, search_with(without, 1, search_.budget_seconds / 4));
        const bool is_writable = !options_.is_writable || options_.is_writable(result.graph).ok();
        return is_writable ? std::optional(std::move(result)) : std::nullopt;
      });
    GOPT_ASSIGN_OR_RETURN(const JudgedModel judged,
                          judge(original_.graph(), passes, outcome_.result, others, *options_.timer));
    outcome_.runtime_times = judged.times;
    return keep(judged.kept);
  }
  Status keep(const std::optional<OptimizeResult>& kept) {
    if (!kept) {
      keep_original();
    } else {
      outcome_.result = *kept;
      result_.emplace(kept->graph, options_.target, costs_);
    }
    outcome_.check = check();
    if (!outcome_.check.checked || outcome_.check.passed) return Unit{};
    outcome_.notes.push_back("the fastest model does not agree with the original: it is left as it was");
    keep_original();
    outcome_.check = check();
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
    // What another reader makes of the file shows mistakes of ours in reading it, too.
    const bool is_by_files = options_.check.engine == CheckEngine::Files;
    if (!is_by_files && !is_rewritten(original_, result())) return {.checked = true, .passed = true, .engine = "none"};
    const Running running(clock_, "checking");
    return check_equal(original_, result(), options_.check, outcome_.result.before.operations, options_.seed + 1);
  }

  // Those of the result's rules and passes that make the difference, as far as a few searches with some of them tell;
  // else all of its rules.
  Result<GuiltyRewrites> what_differs() {
    constexpr int kMostSearches = 10;
    const std::set<std::string> applied = applied_rules();
    const GuiltyRewrites all{.rules = {applied.begin(), applied.end()}, .is_smallest = false};
    if (is_stopped()) return all;
    SearchOptions search = search_;
    search.budget_seconds = search_.budget_seconds / kMostSearches;
    const auto oracle = oracle_of_search(kCautious);
    const double operations = outcome_.result.before.operations;
    const auto differs = [&](const OptimizeResult& some) -> Result<bool> {
      PlannedGraph other(some.graph, options_.target, costs_);
      const CheckReport report = check_equal(original_, other, options_.check, operations, options_.seed + 1);
      return report.checked && !report.passed;
    };
    GOPT_ASSIGN_OR_RETURN(const GuiltyRewrites found, find_guilty(original_.graph(), what_made(outcome_.result), rules_,
                                                                  *oracle, search, differs, kMostSearches));
    return found.empty() ? all : found;
  }

  // A search whose result agrees with the original and can be written. One that does not is not kept: what makes it
  // differ is left out and the search is made again; in the end the model stays as it was.
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
      GOPT_ASSIGN_OR_RETURN(const GuiltyRewrites guilty, what_differs());
      const std::string on = "the optimized model does not agree with the original on " + outcome_.check.draws.back() +
                             " random inputs (--rtol and --atol say how closely it must)";
      if (guilty.empty()) {
        outcome_.notes.push_back(on + ": it is left as it was");
        break;
      }
      outcome_.notes.push_back(on + ": it is searched again without " + text_of(guilty));
      add_names(guilty.rules, search_.disabled_rules);
      add_names(guilty.passes, search_.disabled_passes);
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
    outcome_.result.origins.clear();
    for (uint32_t node = 0; node < original_.graph().nodes().size(); node++)
      outcome_.result.origins.push_back({NodeId{node}});
  }

  void add_plans() {
    const Running running(clock_, "planning");
    const auto original = original_.plan(), plan = result().plan();
    if (original.ok()) outcome_.original_plan = **original;
    if (plan.ok()) outcome_.plan = **plan;
    if (!plan.ok()) outcome_.plan_note = plan.error().message;
  }

  // Original and result, timed in turns on this machine; the faster one is kept.
  void time_both() {
    if (options_.target.kind != TargetKind::Cpu) {
      outcome_.latency_note = "not measured: CUDA code is timed on a machine with a GPU";
      return;
    }
    if (!is_rewritten(original_, result())) return;
    const Running running(clock_, "timing the code");
    const auto latency = measure_latency(original_, result(), options_);
    if (!latency.ok()) {
      outcome_.latency_note = "not measured: " + latency.error().message;
      return;
    }
    outcome_.latency = *latency;
    if (latency->speedup >= kTimingNoise) return;
    outcome_.latency_note = "the rewritten model was not faster; the unrewritten one is what was kept";
    keep_original();
    outcome_.check = check();
  }

  void time_plan() {
    if (!costs_.cache || options_.target.kind != TargetKind::Cpu) return;
    outcome_.plan_latency = keep_faster_plan(result(), options_, clock_);
    const bool is_other = outcome_.plan_latency && outcome_.plan_latency->kept_analytic;
    if (is_other && outcome_.latency && result_) outcome_.latency->plan = print_plan(**result().plan());
  }

  const std::vector<RewriteRule>& rules_;
  const DriverOptions& options_;
  SearchOptions search_;
  CostSource costs_;
  PlannedGraph original_;
  std::optional<PlannedGraph> result_;
  RuleConfirmer confirmer_;
  Outcome outcome_;
  PhaseClock clock_;
  KernelTiming kernels_;
  double seconds_left_ = 0;  // of the search's
};

}  // namespace

Result<Outcome> optimize_graph(const Graph& graph, const std::vector<RewriteRule>& rules,
                               const DriverOptions& options) {
  GOPT_ASSIGN_OR_RETURN(Outcome outcome, Optimization(graph, rules, options).run());
  GOPT_RETURN_IF_ERROR(choose_onnx(graph, rules, options, outcome));
  return outcome;
}

}  // namespace gopt
