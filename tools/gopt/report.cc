#include "report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "emit_pieces.h"

namespace gopt::cli {
namespace {

void print_operators(const OptimizationReport& r) {
  const auto counts = operator_counts(r);
  // What was read may be other operators than the file's: functions taken apart, shape arithmetic folded.
  const bool differs = std::ranges::any_of(counts, [](const auto& c) { return c.second.in_file != c.second.before; });
  const auto print = [&](const char* indent, const std::string& name, const auto&... columns) {
    fmt::print("{}{:<{}}", indent, name, 28 - std::string_view(indent).size());
    const auto all = {fmt::format("{}", columns)...};
    for (auto it = all.begin() + (differs ? 0 : 1); it != all.end(); it++) fmt::print(" {:>7}", *it);
    fmt::print("\n");
  };
  print("", "operators", "in file", "before", "after");
  OperatorCount total;
  for (const auto& [name, count] : counts) {
    print("  ", name, count.in_file, count.before, count.after);
    total.in_file += count.in_file;
    total.before += count.before;
    total.after += count.after;
  }
  print("  ", "together", total.in_file, total.before, total.after);
}

void print_applied(const OptimizationReport& r) {
  std::vector<std::pair<std::string, int>> applied;  // in order of first use
  for (const AppliedRule& a : r.outcome.result.applied) {
    auto it = std::find_if(applied.begin(), applied.end(), [&](const auto& known) { return known.first == a.rule; });
    if (it == applied.end())
      applied.emplace_back(a.rule, 1);
    else
      it->second++;
  }
  fmt::print("rules applied:{}\n", applied.empty() ? " none" : "");
  for (const auto& [name, times] : applied) {
    const ProofRecord& proof = r.outcome.proofs.at(name);
    fmt::print("  {:<44} x{:<4} proved, {} obligations, {}\n", name, times, proof.obligations, proof.solver);
  }
}

// What of the model was checked, where that is not all of it as it is.
std::string extent_of_check(const CheckReport& c) {
  std::string text;
  if (!c.extents.empty()) text += "; with " + c.extents;
  if (c.nodes_checked < c.nodes)
    text += fmt::format("; {} of {} operators ({:.0f} %), none of {} and what only they lead to", c.nodes_checked,
                        c.nodes, 100.0 * c.nodes_checked / c.nodes, fmt::join(c.left_out, ", "));
  if (!c.not_drawn.empty()) text += fmt::format("; no time for {} ones", fmt::join(c.not_drawn, ", "));
  return text;
}

std::string inputs_text(const CheckReport& c) {
  const auto given = static_cast<size_t>(std::ranges::count(c.draws, "given"));
  return fmt::format("{} kinds of fresh random inputs{}", c.draws.size() - given, given > 0 ? " and those given" : "");
}

std::string check_text(const CheckReport& c) {
  if (!c.checked) return "not checked: " + c.why_not;
  if (c.engine == "none") return "PASSED (the graph is unchanged)";
  double worst = 0;
  for (const Difference& d : c.differences) worst = std::max(worst, d.max_relative);
  const std::string verdict = !c.passed ? "FAILED" : c.amplified.empty() ? "PASSED" : "as far as can be told PASSED";
  return fmt::format("{} (max |a-b| / max |a| = {:.2g}, {}, {}{}{})", verdict, worst, c.engine,
                     c.passed ? inputs_text(c) : last_inputs(c), extent_of_check(c),
                     c.amplified.empty() ? "" : ", " + c.amplified) +
         (c.of_runtime.empty() ? "" : "; " + c.of_runtime);
}

std::string plan_text(const PlanLatency& p) {
  return fmt::format("{} is kept: by measured costs {:.3f} ms, by {} {:.3f} ms{}", p.kept_other ? "the other" : "it",
                     p.own_ms, p.other, p.other_ms, p.is_cached ? " (from the cache)" : "");
}

}  // namespace

std::string operator_name(const Node& node) {
  if (!node.opaque) return op_info(node.op).name;
  const std::string& domain = node.opaque->domain;
  return domain.empty() ? node.opaque->op_type : domain + "." + node.opaque->op_type;
}

std::map<std::string, int> running_operators(const Graph& graph) {
  std::map<std::string, int> counts;
  for (size_t k = 0; k < graph.nodes().size(); k++) {
    const Node& node = *graph.nodes()[k];
    if (node.is(OpKind::Input) || node.is(OpKind::Constant) ||
        graph.depends_on_weights_only(NodeId{static_cast<uint32_t>(k)}))
      continue;
    counts[operator_name(node)]++;
  }
  return counts;
}

std::map<std::string, OperatorCount> operator_counts(const OptimizationReport& r) {
  std::map<std::string, OperatorCount> counts;
  for (const auto& [name, count] : r.in_file) counts[name].in_file = count;
  for (const auto& [name, count] : running_operators(r.before)) counts[name].before = count;
  for (const auto& [name, count] : running_operators(r.outcome.result.graph)) counts[name].after = count;
  return counts;
}

std::string cost_kind(const OptimizationReport& r) {
  if (r.options.target.kind == TargetKind::Onnx) return "runtime";
  return r.outcome.has_measured_costs ? "measured" : "analytic";
}

const RuntimeTimes* runtime_times(const OptimizationReport& r) {
  const Outcome& onnx = r.outcome.onnx ? *r.outcome.onnx : r.outcome;
  return onnx.runtime_times ? &*onnx.runtime_times : nullptr;
}

std::string onnx_text(const OptimizationReport& r) {
  if (!r.outcome.onnx) return "";
  const OptimizeResult& own = r.outcome.onnx->result;
  return fmt::format(
      "not of the code's graph, but of a search by a runtime's cost: {:.4g} ms -> {:.4g} ms, {} -> {} nodes, {}",
      own.before.time_ms, own.after.time_ms, own.before.kernels, own.after.kernels, check_text(r.outcome.onnx->check));
}

std::optional<EarnedBack> earned_back(const OptimizationReport& r) {
  const auto& latency = r.outcome.latency;
  const RuntimeTimes* in_runtime = runtime_times(r);
  const OptimizeResult& result = r.outcome.result;
  const double saved_ms = latency      ? latency->before_ms - latency->after_ms
                          : in_runtime ? in_runtime->before_ms - in_runtime->after_ms
                                       : result.before.time_ms - result.after.time_ms;
  const Graph& kept = latency ? result.graph : r.outcome.onnx_graph();
  if (kept.hash() == r.before.hash() || saved_ms <= 0) return std::nullopt;
  return EarnedBack{std::ceil(1e3 * r.seconds / saved_ms), latency || in_runtime};
}

// "batch=8 (at most 32) seq=128".
static std::string usual_text(const std::vector<OpenExtent>& open) {
  std::string text;
  for (const OpenExtent& extent : open) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", atom(extent.symbol).name, extent.usual);
    if (extent.maximum) text += fmt::format(" (at most {})", *extent.maximum);
  }
  return text;
}

std::set<std::string> applied_mutants(const OptimizationReport& r) {
  std::set<std::string> names;
  if (!r.outcome.mutants) return names;
  for (const AppliedRule& applied : r.outcome.result.applied)
    for (const RewriteRule& rule : r.outcome.mutants->rules)
      if (rule.name == applied.rule) names.insert(rule.name);
  return names;
}

static std::vector<std::string> calls_of(const Plan& plan) {
  std::vector<std::string> lines;
  for (const ExternalOperator& own : external_operators(plan))
    lines.push_back(
        fmt::format("{} (node{} {}): it has no definition here; give the code a function for it with gopt_register "
                    "(model.h) before the first run",
                    own.name, own.nodes.size() == 1 ? "" : "s", fmt::join(own.nodes, ", ")));
  return lines;
}

static void print_calls(const Plan& plan) {
  for (const std::string& line : calls_of(plan)) fmt::print("to register      {}. Times are without it\n", line);
}

std::vector<std::string> operators_to_register(const OptimizationReport& r) {
  std::vector<std::string> all;
  if (r.outcome.plan) all = calls_of(*r.outcome.plan);
  if (!r.pieces) return all;
  for (const auto& piece : r.pieces->outcomes)
    if (piece) std::ranges::move(calls_of(*piece->plan), std::back_inserter(all));
  return all;
}

// Which steps there are, and how far the code of each piece was checked.
static void print_pieces(const OptimizationReport& r) {
  const auto count = std::ranges::count_if(r.pieces->split.steps, &ModelStep::is_code);
  const size_t yours = r.pieces->split.steps.size() - static_cast<size_t>(count);
  fmt::print("pieces           {} of code, {} step{} yours\n{}", count, yours, yours == 1 ? " is" : "s are",
             plan_text(*r.pieces, named_steps(*r.pieces, r.prefix)));
  for (size_t k = 0; k < r.pieces->outcomes.size(); k++) {
    const auto& piece = r.pieces->outcomes[k];
    if (!piece) continue;
    const std::string checked = piece->code_check ? check_text(*piece->code_check) : piece->latency_note;
    if (!checked.empty()) fmt::print("code of piece_{:<3} {}\n", k, checked);
    print_calls(*piece->plan);
  }
}

void print_report(const OptimizationReport& r) {
  print_operators(r);
  print_applied(r);
  fmt::print("search           {} ({}), {} steps, {} graphs seen, {:.1f} s\n", to_string(r.options.search.search),
             to_string(r.outcome.result.stop_reason), r.outcome.result.steps, r.outcome.result.graphs_seen,
             r.outcome.result.seconds);
  if (const auto& m = r.outcome.mutants)
    fmt::print(
        "mutants          {} subgraphs, {} candidates, {} in the model, {} proved, {} new rules, {} applied, {:.1f} "
        "s\n",
        m->subgraphs, m->candidates, m->matched, m->proved, m->rules.size(), applied_mutants(r).size(), m->seconds);
  fmt::print("estimated        {:.4g} ms -> {:.4g} ms, {} -> {} {} ({} cost)\n", r.outcome.result.before.time_ms,
             r.outcome.result.after.time_ms, r.outcome.result.before.kernels, r.outcome.result.after.kernels,
             r.options.target.kind == TargetKind::Onnx ? "nodes" : "kernels", cost_kind(r));
  if (r.options.target.kind == TargetKind::Cuda && r.outcome.has_measured_costs)
    fmt::print("kernel times     {}\n", r.outcome.machine);
  if (r.outcome.kernels_timed > 0)
    fmt::print("kernels timed    {} in {:.1f} s\n", r.outcome.kernels_timed, r.outcome.timing_seconds);
  if (r.outcome.latency)
    fmt::print("measured         {:.3f} ms -> {:.3f} ms, {:.2f}x (medians, interleaved{})\n",
               r.outcome.latency->before_ms, r.outcome.latency->after_ms, r.outcome.latency->speedup,
               r.outcome.latency->is_cached ? "; from the cache" : "");
  if (!r.outcome.latency_note.empty()) fmt::print("measured         {}\n", r.outcome.latency_note);
  const RuntimeTimes* times = runtime_times(r);
  if (times && times->candidates == 0) fmt::print("in {}: nothing was rewritten that could be timed\n", times->runtime);
  if (times && times->candidates > 0)
    fmt::print("in {}: {:.3f} ms -> {:.3f} ms, {:.3f}x (noise {:.3f}, {} rewritten models timed, {:.1f} s), kept {}\n",
               times->runtime, times->before_ms, times->after_ms, times->speedup, times->noise, times->candidates,
               times->seconds, times->kept);
  if (r.outcome.onnx) fmt::print("onnx             {}\n", onnx_text(r));
  for (const PlanLatency& p : r.outcome.plan_latencies) fmt::print("plan             {}\n", plan_text(p));
  fmt::print("accuracy         {}\n", check_text(r.outcome.check));
  if (r.outcome.code_check) fmt::print("code             {}\n", check_text(*r.outcome.code_check));
  if (r.outcome.plan) print_calls(*r.outcome.plan);
  if (r.pieces) print_pieces(r);
  if (!r.output.empty()) fmt::print("wrote            {}\n", r.output);
  const std::vector<OpenExtent>& open = r.options.target.open;
  if (!r.emitted.empty() && !open.empty()) fmt::print("sizes            any; planned for {}\n", usual_text(open));
  if (!r.emitted.empty()) fmt::print("emitted          {}\n", r.emitted);
  const auto back = earned_back(r);
  fmt::print("seconds          {:.1f}{}\n", r.seconds,
             back ? fmt::format(", earned back after {:.3g} runs ({})", back->runs,
                                back->is_measured ? "measured" : "estimated")
                  : "");
}

void print_details(const OptimizationReport& r) {
  fmt::print("{:<28} {:>8}\n", "passes", "seconds");
  for (const PassNote& pass : r.outcome.result.passes)
    fmt::print("  {:<26} {:>8.3f}  {}\n", pass.pass, pass.seconds, pass.changed ? "changed the graph" : "unchanged");
  fmt::print("{:<28} {:>8} {:>7}\n", "phases", "seconds", "times");
  for (const Phase& phase : r.phases) fmt::print("  {:<26} {:>8.3f} {:>7}\n", phase.name, phase.seconds, phase.times);
}

}  // namespace gopt::cli
