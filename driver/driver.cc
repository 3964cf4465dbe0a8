// One optimization, step by step: costs, searches until a result agrees with the original, then the plan.
#include "gopt/driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "check.h"
#include "code_timing.h"
#include "gopt/portable.h"
#include "judge.h"
#include "lost_digits.h"
#include "machine.h"
#include "machine_speed.h"
#include "memory.h"
#include "mutation/mutant_rules.h"
#include "onnx_target.h"
#include "searches.h"

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

bool is_rewritten(const PlannedGraph& original, const PlannedGraph& result) {
  return !result.graph().same_as(original.graph()) && result.graph().hash() != original.graph().hash();
}

class Optimization {
 public:
  Optimization(const Graph& graph, const std::vector<RewriteRule>& rules, const DriverOptions& options)
      : options_(options),
        costs_(analytic_costs(graph)),
        original_(graph, options.target, costs_),
        kernels_(options, costs_, clock_),
        plans_(options, clock_),
        searches_(original_.graph(), rules, options, costs_, kernels_, clock_) {}

  Result<Outcome> run() {
    if (options_.wants_code && options_.times_code && !why_code_cannot_run(options_.target))
      GOPT_RETURN_IF_ERROR(must_run_here());
    GOPT_RETURN_IF_ERROR(prepare_costs());
    GOPT_RETURN_IF_ERROR(search_until_equal());
    if (options_.check.engine == CheckEngine::Files && outcome_.check.checked && !outcome_.check.passed)
      return Error{options_.check.original_file + ": what gopt would write of it, unrewritten, does not compute in " +
                   outcome_.check.engine + " what the file does, on " + last_inputs(outcome_.check) +
                   "; nothing is written"};
    GOPT_RETURN_IF_ERROR(must_be_expected());
    if (options_.timer && options_.target.kind == TargetKind::Onnx) GOPT_RETURN_IF_ERROR(judge_result());
    if (options_.wants_code && options_.times_code) {
      judge_code();
      time_plan();
      GOPT_RETURN_IF_ERROR(must_build());
      GOPT_RETURN_IF_ERROR(check_code_of_result());
    }
    if (options_.wants_code) {
      GOPT_ASSIGN_OR_RETURN(const Plan* plan, result().plan());
      keep_plan(*plan);
    }
    if (options_.wants_plans) add_plans();
    tell_of_run();
    return std::move(outcome_);
  }

 private:
  using Running = PhaseClock::Running;

  // Code is run, and compared, before it is given away.
  Status must_run_here() const {
    const Status fits = must_fit_memory(original_.graph());
    if (fits.ok()) return fits;
    return Error{"code for this model cannot be run here, and so not be checked: " + fits.error().message +
                 "; say smaller extents with --shape, or emit unchecked code with --no-measure"};
  }

  // The best so far is what is wanted then: it is checked, but nothing more is timed.
  bool is_interrupted() const { return options_.search.stop && *options_.search.stop; }

  PlannedGraph& result() { return result_ ? *result_ : original_; }

  Status prepare_costs() {
    GOPT_ASSIGN_OR_RETURN(const PreparedCosts prepared, kernels_.prepare(original_.graph()));
    outcome_.notes = prepared.notes;
    outcome_.has_measured_costs = prepared.has_measured_costs;
    outcome_.machine = prepared.machine;
    plans_.keep_in(kernels_.cache_of_here());
    return Unit{};
  }

  // A search whose result agrees with the original and can be written. One that does not is not kept: what makes it
  // differ is left out and the search is made again; in the end the model stays as it was.
  Status search_until_equal() {
    constexpr int kTries = 4;
    for (int attempt = 0; attempt < kTries; attempt++) {
      GOPT_ASSIGN_OR_RETURN(OptimizeResult found, searches_.best());
      keep(std::move(found));
      if (const auto why = why_not_writable()) {
        outcome_.notes.push_back(*why + "; the unrewritten model is kept");
        break;
      }
      outcome_.check = check();
      if (!outcome_.check.checked && options_.check.engine != CheckEngine::Off && !outcome_.result.applied.empty())
        outcome_.notes.push_back("the result is not checked: " + outcome_.check.why_not);
      if (!outcome_.check.checked || outcome_.check.passed) return Unit{};
      GOPT_ASSIGN_OR_RETURN(const GuiltyRewrites guilty, what_differs());
      const std::string on = "the optimized model does not agree with the original on " + last_inputs(outcome_.check) +
                             " (--rtol and --atol say how closely it must)";
      if (guilty.empty()) {
        outcome_.notes.push_back(on + ": it is left as it was");
        break;
      }
      outcome_.notes.push_back(on + ": it is searched again without " + text_of(guilty));
      searches_.leave_out(guilty);
    }
    keep_original();
    outcome_.check = check();
    return Unit{};
  }

  std::optional<std::string> why_not_writable() {
    if (!options_.is_writable || !is_rewritten(original_, result())) return std::nullopt;
    if (has_own_file_graph(original_.graph(), options_)) return std::nullopt;
    const Status status = options_.is_writable(result().graph());
    if (!status.ok()) return status.error().message;
    if (refused_by_runtimes(original_.graph())) return std::nullopt;
    return refused_by_runtimes(result().graph());
  }
  static std::optional<std::string> refused_by_runtimes(const Graph& graph) {
    for (const NodePtr& node : graph.nodes())
      if (const auto why = why_refused_by_runtimes(*node))
        return "a rewrite made a " + std::string(op_info(node->op).name) + " that ONNX Runtime refuses: " + *why;
    return std::nullopt;
  }

  // What is as it was computes what it did.
  CheckReport check() {
    // What another reader makes of the file shows mistakes of ours in reading it, too.
    const bool is_by_files = options_.check.engine == CheckEngine::Files;
    const bool is_asked = is_by_files || !options_.check.expected.empty();
    if (!is_asked && !is_rewritten(original_, result())) return {.checked = true, .passed = true, .engine = "none"};
    return check_of(result());
  }

  // Outputs that are expected and that the unrewritten model does not give, either.
  Status must_be_expected() {
    if (options_.check.expected.empty() || !outcome_.check.checked || outcome_.check.passed) return Unit{};
    std::string worst;
    for (const Difference& d : outcome_.check.differences)
      if (!d.passed) worst += (worst.empty() ? "" : ", ") + d.output;
    return Error{"the unrewritten model does not compute what is expected of it on the inputs that are given: " +
                 worst + " (--rtol and --atol say how closely it must); nothing is written"};
  }
  CheckReport check_of(PlannedGraph& other) {
    const Running running(clock_, "checking");
    return check_equal(original_, other, options_.check, outcome_.result.before.operations, options_.seed + 1);
  }

  Result<GuiltyRewrites> what_differs() {
    return searches_.what_differs(outcome_.result, [&](const OptimizeResult& some) -> Result<bool> {
      PlannedGraph other(some.graph, options_.target, costs_);
      const CheckReport report = check_of(other);
      return report.checked && !report.passed;
    });
  }

  void keep(OptimizeResult found) {
    outcome_.result = std::move(found);
    result_.emplace(outcome_.result.graph, options_.target, costs_);
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

  // The result by its times, against the original and what is found without each of its rules.
  Result<JudgedModel> judged_by(ModelTimer& timer, const JudgeOptions& options) {
    GOPT_ASSIGN_OR_RETURN(const OptimizeResult passes, searches_.passes_alone());
    std::vector<Candidate> others;
    // Without the only rule there are the passes, which are judged anyway.
    std::vector<std::string> rules = Searches::most_promising_first(outcome_.result);
    if (rules.size() == 1) rules.clear();
    for (const std::string& rule : rules)
      others.push_back([this, rule]() -> Result<std::optional<OptimizeResult>> {
        GOPT_ASSIGN_OR_RETURN(OptimizeResult result, searches_.without(rule, outcome_.result));
        const bool is_for_file = options_.is_writable && !has_own_file_graph(original_.graph(), options_);
        const bool is_writable = !is_for_file || options_.is_writable(result.graph).ok();
        return is_writable ? std::optional(std::move(result)) : std::nullopt;
      });
    return judge(original_.graph(), passes, outcome_.result, others, timer, options);
  }

  // The result is checked already; what is found without one of its rules is not.
  void keep_judged(std::optional<OptimizeResult> kept, std::optional<PlannedGraph> planned) {
    if (kept && kept->graph.hash() == result().graph().hash()) return;
    if (kept)
      keep(*std::move(kept));
    else
      keep_original();
    if (planned) result_.emplace(*std::move(planned));
    outcome_.check = check();
    if (!outcome_.check.checked || outcome_.check.passed) return;
    outcome_.notes.push_back("the fastest model does not agree with the original: it is left as it was");
    keep_original();
    outcome_.check = check();
  }

  Status judge_result() {
    if (is_interrupted()) {
      outcome_.notes.emplace_back("interrupted: the result is not timed in the runtime");
      return Unit{};
    }
    const Running running(clock_, "timing in the runtime");
    GOPT_ASSIGN_OR_RETURN(JudgedModel judged, judged_by(*options_.timer, {.stop = options_.search.stop}));
    outcome_.runtime_times = judged.times;
    keep_judged(std::move(judged.kept), std::nullopt);
    return Unit{};
  }

  // Code that does not build is none. Where a target's tools or devices are missing, it is for another machine.
  Status must_build() {
    if (why_code_cannot_run(options_.target)) return Unit{};
    GOPT_RETURN_IF_ERROR(result().plan());
    const Status built = plans_.must_build(result());
    if (built.ok()) return Unit{};
    return Error{"the emitted code does not build on this machine: " + built.error().message +
                 "\nnothing is written; --no-measure writes code for another machine, neither built nor checked here"};
  }

  // Original and result, timed in turns on the machine that the code is for; where the original is faster, so may be
  // what is found without one of the rules.
  void judge_code() {
    if (const auto why = why_code_cannot_run(options_.target)) {
      outcome_.latency_note = "not measured; the code is neither built nor checked here: " + *why;
      return;
    }
    if (!is_rewritten(original_, result())) return;
    if (is_interrupted()) {
      outcome_.latency_note = "not measured: interrupted";
      return;
    }
    constexpr double kSecondsForOthers = 12;
    const Running running(clock_, "timing the code");
    CodeTimer timer(options_, costs_, plans_, {&original_, &result()});
    auto judged =
        judged_by(timer, {.is_content = true, .seconds_for_others = kSecondsForOthers, .stop = options_.search.stop});
    if (!judged.ok()) {
      outcome_.latency_note = "not measured: " + judged.error().message;
      return;
    }
    std::optional<PlannedGraph> other = judged->kept ? timer.take(judged->kept->graph) : std::nullopt;
    const auto plan = (other ? *other : result()).plan();
    const RuntimeTimes& times = judged->times;
    outcome_.latency = {times.before_ms, times.after_ms, times.speedup, plan.ok() ? print_plan(**plan) : "",
                        plans_.timed() == 0};
    if (!judged->kept)
      outcome_.latency_note = "the rewritten model was not faster; the unrewritten one is what was kept";
    keep_judged(std::move(judged->kept), std::move(other));
  }

  // Code that computes something else is never written. In fp16 that may be of values beyond its range, which are
  // stored in fp32 then; where the code cannot be run, those are looked for first.
  Status check_code_of_result() {
    const bool may_run = !why_code_cannot_run(options_.target);
    const Running running(clock_, "checking");
    const auto check = [&] { return check_code_of(result()); };
    const Status first = may_run ? check() : Unit{};
    if (options_.target.precision == Precision::Bf16x3 && may_run) return keep_digits(first);
    if (options_.target.precision != Precision::Fp16 || (may_run && first.ok())) return first;
    if (options_.check.engine == CheckEngine::Off) return first;
    const auto widened = widen_values(result(), options_, outcome_.result.after.operations);
    if (!widened.ok())
      outcome_.notes.push_back("whether values leave the range of fp16 is not known: " + widened.error().message);
    if (!widened.ok() || *widened == 0) return first;
    outcome_.notes.push_back(std::to_string(*widened) + " value(s) leave the range of fp16 and are stored in fp32");
    return may_run ? check() : Unit{};
  }

  Status check_code_of(PlannedGraph& graph) {
    outcome_.code_check = check_code(graph, options_, outcome_.result.after.operations);
    return outcome_.code_check ? must_agree(*outcome_.code_check) : Unit{};
  }

  // The largest error of the code that was checked; 0 where none was.
  double error_of_code() const {
    double most = 0;
    if (!outcome_.code_check) return most;
    for (const Difference& d : outcome_.code_check->differences) most = std::max(most, d.max_relative);
    return most;
  }

  // What the precision is said to lose at most holds for the whole network, on the inputs of the check: where it is
  // more, so many kernels compute in floats that it is not. Where all do, and about as much is lost, it is not for
  // their digits, and what was timed stays. `first`: what the check of that said.
  Status keep_digits(const Status& first) {
    const double lost = error_of_code();
    if ((first.ok() && lost <= kMostLost) || is_interrupted()) return first;
    const std::optional<CheckReport> as_timed = outcome_.code_check;
    PlannedGraph other(result().graph(), options_.target, costs_);
    GOPT_ASSIGN_OR_RETURN(const Plan* plan, other.plan());
    const auto of_two = static_cast<double>(kernels_of_two_terms(*plan));
    if (of_two == 0) return first;
    constexpr double kMargin = 0.8;  // each kernel's part of the error's square is taken to be as large as any other's
    const double share = first.ok() ? kMargin * kMostLost / lost * kMostLost / lost : 0;
    size_t count = 0;
    Status checked = first;
    for (const double stays : {share, share / 4, 0.0}) {
      const auto plan_with = [&](const std::set<ValueKey>& in_fp32) {
        other.keep_in_fp32(in_fp32);
        return other.plan();
      };
      GOPT_ASSIGN_OR_RETURN(count, leave_two_terms(plan_with, static_cast<size_t>(stays * of_two)));
      checked = check_code_of(other);
      if (checked.ok() && error_of_code() <= kMostLost) break;
    }
    const double left = error_of_code();
    const std::string said = fmt::format(
        "with sums of two the code's error is {:.1e} of the largest result, more than {:.0e}", lost, kMostLost);
    if (!checked.ok() || (left > kMostLost && left > lost / 2)) {
      outcome_.notes.push_back(said + fmt::format("; in floats it is {:.1e}", left));
      outcome_.code_check = as_timed;
      return first;
    }
    outcome_.notes.push_back(fmt::format("{} kernel(s) compute in floats: {}; it is {:.1e} so", count, said, left));
    result_.emplace(std::move(other));
    outcome_.latency.reset();
    outcome_.latency_note = "not measured: some kernels compute in floats since plans were timed";
    outcome_.plan_latencies.clear();
    return Unit{};
  }

  void time_plan() {
    const bool is_for_runtime = options_.target.kind == TargetKind::Onnx;
    if (!costs_.cache || is_for_runtime || why_code_cannot_run(options_.target) || is_interrupted()) return;
    const Running running(clock_, "timing the code");
    outcome_.plan_latencies = keep_faster_plan(result(), options_, costs_, plans_);
    const bool is_other = std::ranges::any_of(outcome_.plan_latencies, &PlanLatency::kept_other);
    if (is_other && outcome_.latency && result_) outcome_.latency->plan = print_plan(**result().plan());
  }

  // A rewrite may have taken away what the original requires of open extents.
  void keep_plan(const Plan& plan) {
    outcome_.plan = plan;
    add_demands(outcome_.plan->demands, size_demands(original_.graph(), options_.target.open));
  }

  void add_plans() {
    const Running running(clock_, "planning");
    const auto original = original_.plan(), plan = result().plan();
    if (original.ok()) outcome_.original_plan = **original;
    if (plan.ok()) keep_plan(**plan);
    if (!plan.ok()) outcome_.plan_note = plan.error().message;
  }

  void tell_of_run() {
    searches_.tell_costs_of_plans(outcome_.result);
    outcome_.proofs = searches_.proofs();
    outcome_.refused = searches_.refused();
    outcome_.notes.insert(outcome_.notes.end(), searches_.notes().begin(), searches_.notes().end());
    outcome_.roofline = roofline_of(options_.target, costs_.roofline);
    outcome_.phases = clock_.phases();
    outcome_.kernels_timed = kernels_.timed();
    outcome_.timing_seconds = kernels_.seconds();
    outcome_.plans_timed = plans_.timed();
    outcome_.notes.insert(outcome_.notes.end(), plans_.notes().begin(), plans_.notes().end());
  }

  const DriverOptions& options_;
  CostSource costs_;
  PlannedGraph original_;
  std::optional<PlannedGraph> result_;
  Outcome outcome_;
  PhaseClock clock_;
  KernelTiming kernels_;
  PlanTiming plans_;
  Searches searches_;
};

}  // namespace

namespace {

// Code that is timed here is for this processor: where that has no instructions for bf16, floats are faster, and exact.
bool is_better_in_fp32(const DriverOptions& options) {
  return options.target.kind == TargetKind::Cpu && options.target.precision != Precision::Fp32 &&
         options.measured_costs && !has_bf16_products();
}

// The rules are offered together with those that are found for this model. Where none can be looked for, they are
// alone.
Result<Outcome> optimize_with_mutants(const Graph& graph, const std::vector<RewriteRule>& rules,
                                      DriverOptions options) {
  auto found = mutants_of(graph, rules, options);
  options.mutation_seconds = 0;
  std::vector<RewriteRule> all = rules;
  if (found) all.insert(all.end(), found->rules.begin(), found->rules.end());
  GOPT_ASSIGN_OR_RETURN(Outcome outcome, optimize_graph(graph, all, options));
  if (!found) {
    outcome.notes.push_back("no mutants are looked for: " + found.error().message);
    return outcome;
  }
  outcome.phases.insert(outcome.phases.begin(), {"finding mutants", found->seconds, 1});
  outcome.mutants = *std::move(found);
  return outcome;
}

}  // namespace

Result<Outcome> optimize_graph(const Graph& graph, const std::vector<RewriteRule>& rules,
                               const DriverOptions& options) {
  if (is_better_in_fp32(options)) {
    DriverOptions in_fp32 = options;
    in_fp32.target.precision = Precision::Fp32;
    GOPT_ASSIGN_OR_RETURN(Outcome outcome, optimize_graph(graph, rules, in_fp32));
    outcome.notes.push_back("this processor has no instructions for bf16: the code computes in fp32, not in " +
                            to_string(options.target.precision));
    return outcome;
  }
  if (options.mutation_seconds > 0) return optimize_with_mutants(graph, rules, options);
  GOPT_ASSIGN_OR_RETURN(Outcome outcome, Optimization(graph, rules, options).run());
  GOPT_RETURN_IF_ERROR(choose_onnx(graph, rules, options, outcome));
  return outcome;
}

}  // namespace gopt
