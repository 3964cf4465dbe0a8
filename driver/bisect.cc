#include "gopt/bisect.h"

#include <algorithm>

#include "check.h"
#include "gopt/kernel_costs.h"
#include "guilty_rewrites.h"
#include "time_in_turns.h"
#include "wrong_kernel.h"

namespace gopt {

using namespace driver;

namespace {

// The result as it was found, whatever a check would say of it. What its search relied on is proved, so that what is
// searched for again is not proved again.
Result<Outcome> found_by(const Graph& graph, const std::vector<RewriteRule>& rules, DriverOptions options) {
  options.check.engine = CheckEngine::Off;
  options.wants_code = false;
  return optimize_graph(graph, rules, options);
}

class ValueBisector {
 public:
  ValueBisector(const Graph& graph, const std::vector<RewriteRule>& rules, const DriverOptions& options)
      : rules_(rules), options_(options), original_(graph, options.target, costs_) {}

  Result<ValueBisection> run(int most_searches) {
    GOPT_ASSIGN_OR_RETURN(outcome_, found_by(original_.graph(), rules_, options_));
    GOPT_ASSIGN_OR_RETURN(costs_, costs_of_run(original_.graph(), options_, outcome_));
    out_.notes = outcome_.notes;
    out_.applied = what_made(outcome_.result);
    out_.check = check(outcome_.result.graph);
    if (!out_.check.checked) return Error{"the result cannot be checked: " + out_.check.why_not};
    if (!out_.check.passed) GOPT_RETURN_IF_ERROR(find_guilty_rewrites(most_searches));
    look_at_kernels();
    return std::move(out_);
  }

 private:
  CheckReport check(const Graph& graph) {
    PlannedGraph other(graph, options_.target, costs_);
    return check_equal(original_, other, options_.check, outcome_.result.before.operations, options_.seed + 1);
  }

  Status find_guilty_rewrites(int most_searches) {
    const auto oracle = plan_cost_oracle(options_.target, costs_.make());
    const auto differs = [this](const OptimizeResult& result) -> Result<bool> {
      const CheckReport report = check(result.graph);
      if (!report.checked) return Error{"a result cannot be checked: " + report.why_not};
      if (!report.passed) out_.guilty_check = report;  // the last one that fails is that of the smallest set
      return !report.passed;
    };
    GOPT_ASSIGN_OR_RETURN(const GuiltyRewrites guilty, find_guilty(original_.graph(), out_.applied, rules_, *oracle,
                                                                   options_.search, differs, most_searches));
    out_.guilty = guilty.rules;
    out_.guilty.insert(out_.guilty.end(), guilty.passes.begin(), guilty.passes.end());
    out_.searches = guilty.searches;
    out_.is_smallest = guilty.is_smallest;
    return Unit{};
  }

  void look_at_kernels() {
    if (options_.target.kind != TargetKind::Cpu) {
      out_.kernel_note = "kernels are compared with the interpreter on the CPU alone";
      return;
    }
    const Status status = compare_kernels();
    if (!status.ok()) out_.kernel_note = "kernels are not compared: " + status.error().message;
  }
  Status compare_kernels() {
    const Graph& graph = outcome_.result.graph;
    GOPT_ASSIGN_OR_RETURN(const CheckedInputs drawn,
                          inputs_of_failure(original_.graph(), graph, out_.check, options_.check, options_.seed + 1));
    GOPT_ASSIGN_OR_RETURN(out_.kernel,
                          first_wrong_kernel(graph, options_.target, costs_, drawn.inputs, drawn.tolerance));
    return Unit{};
  }

  const std::vector<RewriteRule>& rules_;
  const DriverOptions& options_;
  CostSource costs_;
  PlannedGraph original_;
  Outcome outcome_;
  ValueBisection out_;
};

class TimeBisector {
 public:
  TimeBisector(const Graph& graph, const std::vector<RewriteRule>& rules, const DriverOptions& options)
      : rules_(rules), options_(options), original_(graph, options.target, costs_) {}

  Result<TimeBisection> run() {
    if (options_.target.kind != TargetKind::Cpu) return Error{"code is timed on this machine's CPU: --target cpu"};
    GOPT_ASSIGN_OR_RETURN(outcome_, found_by(original_.graph(), rules_, options_));
    GOPT_ASSIGN_OR_RETURN(costs_, costs_of_run(original_.graph(), options_, outcome_));
    out_.notes = outcome_.notes;
    whole_.emplace(outcome_.result.graph, options_.target, costs_);
    GOPT_RETURN_IF_ERROR(time_whole());
    for (const std::string& name : what_made(outcome_.result)) {
      if (options_.search.stop && *options_.search.stop) break;
      GOPT_ASSIGN_OR_RETURN(TimeWithout without, time_without(name));
      out_.without.push_back(std::move(without));
    }
    std::stable_sort(out_.without.begin(), out_.without.end(),
                     [](const TimeWithout& a, const TimeWithout& b) { return a.ratio > b.ratio; });
    return std::move(out_);
  }

 private:
  Status time_whole() {
    GOPT_ASSIGN_OR_RETURN(RunnableModel * before, original_.code_for_target());
    GOPT_ASSIGN_OR_RETURN(RunnableModel * after, whole_->code_for_target());
    GOPT_ASSIGN_OR_RETURN(const PairedTimes times,
                          time_in_turns(*before, *after, options_.seed, {.most_rounds = options_.runs}));
    out_.before_ms = times.first_ms;
    out_.after_ms = times.second_ms;
    out_.speedup = times.ratio;
    out_.low = times.low;
    out_.high = times.high;
    GOPT_ASSIGN_OR_RETURN(const auto inputs, after->draw(options_.seed));
    GOPT_ASSIGN_OR_RETURN(const auto profile, after->profile(inputs, options_.runs));
    GOPT_ASSIGN_OR_RETURN(const Plan* plan, whole_->plan());
    for (size_t k = 0; k < profile.size() && k < plan->kernels.size(); k++)
      out_.kernels.push_back(
          {profile[k].first, profile[k].second / options_.runs, estimate_of(*plan, profile[k].first)});
    std::stable_sort(out_.kernels.begin(), out_.kernels.end(),
                     [](const KernelTime& a, const KernelTime& b) { return a.ms > b.ms; });
    return Unit{};
  }

  static double estimate_of(const Plan& plan, const std::string& kernel) {
    for (const Kernel& own : plan.kernels)
      if (own.name == kernel) return own.estimated_ms;
    return 0;
  }

  Result<OptimizeResult> search_without(const std::string& name) {
    SearchOptions search = options_.search;
    const auto& passes = pass_names();
    const bool is_pass = std::find(passes.begin(), passes.end(), name) != passes.end();
    (is_pass ? search.disabled_passes : search.disabled_rules).push_back(name);
    for (const RefusedRule& refused : outcome_.refused) search.disabled_rules.push_back(refused.rule);
    const auto oracle = plan_cost_oracle(options_.target, costs_.make());
    return optimize(original_.graph(), rules_, *oracle, search);
  }

  Result<TimeWithout> time_without(const std::string& name) {
    TimeWithout out{name};
    for (const AppliedRule& applied : outcome_.result.applied) out.times += applied.rule == name;
    GOPT_ASSIGN_OR_RETURN(const OptimizeResult result, search_without(name));
    PlannedGraph other(result.graph, options_.target, costs_);
    GOPT_ASSIGN_OR_RETURN(const Plan* with, whole_->plan());
    const auto without = other.plan();
    out.has_same_kernels = without.ok() && has_same_kernels(*with, **without);
    out.ms = out_.after_ms;
    if (out.has_same_kernels) return out;
    const auto code = other.code_for_target();
    if (!code.ok()) {
      out.note = "not timed: " + code.error().message;
      return out;
    }
    GOPT_ASSIGN_OR_RETURN(RunnableModel * whole, whole_->code_for_target());
    GOPT_ASSIGN_OR_RETURN(const PairedTimes times,
                          time_in_turns(**code, *whole, options_.seed, {.most_rounds = options_.runs}));
    out.ms = times.first_ms;
    out.ratio = times.ratio;
    out.low = times.low;
    out.high = times.high;
    return out;
  }

  const std::vector<RewriteRule>& rules_;
  const DriverOptions& options_;
  CostSource costs_;
  PlannedGraph original_;
  std::optional<PlannedGraph> whole_;
  Outcome outcome_;
  TimeBisection out_;
};

}  // namespace

Result<ValueBisection> bisect_value(const Graph& graph, const std::vector<RewriteRule>& rules,
                                    const DriverOptions& options, int most_searches) {
  return ValueBisector(graph, rules, options).run(most_searches);
}

Result<TimeBisection> bisect_time(const Graph& graph, const std::vector<RewriteRule>& rules,
                                  const DriverOptions& options) {
  return TimeBisector(graph, rules, options).run();
}

}  // namespace gopt
