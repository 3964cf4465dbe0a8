#include "report.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace gopt::cli {
namespace {

struct Count {
  int before = 0, after = 0;
};

// Operators that run: what depends on initializers alone is folded once.
void count_operators(const Graph& graph, int Count::*side, std::map<std::string, Count>& counts) {
  for (size_t k = 0; k < graph.nodes().size(); k++) {
    const Node& node = *graph.nodes()[k];
    if (node.is(OpKind::Input) || node.is(OpKind::Constant) ||
        graph.depends_on_weights_only(NodeId{static_cast<uint32_t>(k)}))
      continue;
    counts[node.opaque ? node.opaque->op_type : op_info(node.op).name].*side += 1;
  }
}
std::map<std::string, Count> operator_counts(const OptimizationReport& r) {
  std::map<std::string, Count> counts;
  count_operators(r.before, &Count::before, counts);
  count_operators(r.outcome.result.graph, &Count::after, counts);
  return counts;
}

void print_operators(const OptimizationReport& r) {
  fmt::print("{:<28} {:>7} {:>7}\n", "operators", "before", "after");
  Count total;
  for (const auto& [name, count] : operator_counts(r)) {
    fmt::print("  {:<26} {:>7} {:>7}\n", name, count.before, count.after);
    total.before += count.before;
    total.after += count.after;
  }
  fmt::print("  {:<26} {:>7} {:>7}\n", "together", total.before, total.after);
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

std::string check_text(const CheckReport& c) {
  if (!c.checked) return "not checked: " + c.why_not;
  if (c.engine == "none") return "PASSED (the graph is unchanged)";
  double worst = 0;
  for (const Difference& d : c.differences) worst = std::max(worst, d.max_relative);
  return fmt::format(
      "{} (max |a-b| / max |a| = {:.2g}, {}, {})", c.passed ? "PASSED" : "FAILED", worst, c.engine,
      c.passed ? fmt::format("{} kinds of fresh random inputs", c.draws.size()) : c.draws.back() + " random inputs");
}

std::string cost_kind(const OptimizationReport& r) {
  if (r.options.target.kind == TargetKind::Onnx) return "runtime";
  return r.outcome.has_measured_costs ? "measured" : "analytic";
}

// What the estimate counts.
std::string counted(const OptimizationReport& r) {
  return r.options.target.kind == TargetKind::Onnx ? "nodes" : "kernels";
}

const RuntimeTimes* runtime_times(const Outcome& outcome) {
  const Outcome& onnx = outcome.onnx ? *outcome.onnx : outcome;
  return onnx.runtime_times ? &*onnx.runtime_times : nullptr;
}

// Of an ONNX file that is not of the code's graph.
std::string onnx_text(const OptimizationReport& r) {
  const OptimizeResult& own = r.outcome.onnx->result;
  return fmt::format(
      "of a search by a runtime's cost, which the code's graph would be dearer by: {:.4g} ms -> {:.4g} ms, {} -> {} "
      "nodes, {}",
      own.before.time_ms, own.after.time_ms, own.before.kernels, own.after.kernels, check_text(r.outcome.onnx->check));
}

// High-water mark of this process' resident memory; 0 where the system does not say.
double peak_memory_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) / 1024;
  return 0;
}

std::string plan_text(const PlanLatency& p) {
  return fmt::format("by {} costs; by measured ones {:.3f} ms, by analytic ones {:.3f} ms",
                     p.kept_analytic ? "analytic" : "measured", p.measured_ms, p.analytic_ms);
}

}  // namespace

void print_report(const OptimizationReport& r) {
  print_operators(r);
  print_applied(r);
  fmt::print("search           {} ({}), {} steps, {} graphs seen, {:.1f} s\n",
             r.options.search.search == SearchKind::None     ? "none"
             : r.options.search.search == SearchKind::Greedy ? "greedy"
                                                             : "backtracking",
             to_string(r.outcome.result.stop_reason), r.outcome.result.steps, r.outcome.result.graphs_seen,
             r.outcome.result.seconds);
  fmt::print("estimated        {:.4g} ms -> {:.4g} ms, {} -> {} {} ({} cost)\n", r.outcome.result.before.time_ms,
             r.outcome.result.after.time_ms, r.outcome.result.before.kernels, r.outcome.result.after.kernels,
             counted(r), cost_kind(r));
  if (r.outcome.kernels_timed > 0)
    fmt::print("kernels timed    {} in {:.1f} s\n", r.outcome.kernels_timed, r.outcome.timing_seconds);
  if (r.outcome.latency)
    fmt::print("measured         {:.3f} ms -> {:.3f} ms, {:.2f}x (medians, interleaved)\n",
               r.outcome.latency->before_ms, r.outcome.latency->after_ms, r.outcome.latency->speedup);
  if (const RuntimeTimes* times = runtime_times(r.outcome))
    fmt::print("in {}: {:.3f} ms -> {:.3f} ms, {:.3f}x (noise {:.3f}, {} rewritten models timed, {:.1f} s), kept {}\n",
               times->runtime, times->before_ms, times->after_ms, times->speedup, times->noise, times->candidates,
               times->seconds, times->kept);
  if (r.outcome.onnx) fmt::print("onnx             {}\n", onnx_text(r));
  if (!r.outcome.latency_note.empty()) fmt::print("measured         {}\n", r.outcome.latency_note);
  if (r.outcome.plan_latency) fmt::print("plan             {}\n", plan_text(*r.outcome.plan_latency));
  fmt::print("accuracy         {}\n", check_text(r.outcome.check));
  if (!r.output.empty()) fmt::print("wrote            {}\n", r.output);
  if (!r.emitted.empty()) fmt::print("emitted          {}\n", r.emitted);
  fmt::print("seconds          {:.1f}\n", r.seconds);
}

std::string report_json(const OptimizationReport& r) {
  using nlohmann::json;
  json operators = json::object(), applied = json::array(), refused = json::array(), passes = json::array(),
       outputs = json::array();
  for (const auto& [name, count] : operator_counts(r))
    operators[name] = {{"before", count.before}, {"after", count.after}};
  for (const AppliedRule& a : r.outcome.result.applied) {
    const ProofRecord& proof = r.outcome.proofs.at(a.rule);
    applied.push_back({{"rule", a.rule},
                       {"content_hash", a.content_hash},
                       {"matched", a.matched_nodes},
                       {"cost_before_ms", a.cost_before_ms},
                       {"cost_after_ms", a.cost_after_ms},
                       {"proof",
                        {{"definitions", proof.definitions},
                         {"obligations", proof.obligations},
                         {"solver", proof.solver},
                         {"digest", proof.digest}}}});
  }
  for (const RefusedRule& rule : r.outcome.refused) refused.push_back({{"rule", rule.rule}, {"why", rule.why}});
  for (const PassNote& p : r.outcome.result.passes)
    passes.push_back({{"pass", p.pass}, {"changed", p.changed}, {"seconds", p.seconds}});
  for (const Difference& d : r.outcome.check.differences)
    outputs.push_back({{"output", d.output},
                       {"max_absolute", d.max_absolute},
                       {"max_relative", d.max_relative},
                       {"passed", d.passed},
                       {"note", d.note}});
  json report = {{"model", r.model},
                 {"output", r.output},
                 {"emitted", r.emitted},
                 {"operators", operators},
                 {"applied", applied},
                 {"refused", refused},
                 {"passes", passes},
                 {"search",
                  {{"alpha", r.options.search.alpha},
                   {"max_steps", r.options.search.max_steps},
                   {"budget_seconds", r.options.search.budget_seconds},
                   {"steps", r.outcome.result.steps},
                   {"stop_reason", to_string(r.outcome.result.stop_reason)},
                   {"rules_offered", r.rules},
                   {"rules_tried", r.outcome.result.rules_tried},
                   {"graphs_seen", r.outcome.result.graphs_seen},
                   {"seconds", r.outcome.result.seconds}}},
                 {"cost",
                  {{"kind", cost_kind(r)},
                   {"kernels_timed", r.outcome.kernels_timed},
                   {"timing_seconds", r.outcome.timing_seconds},
                   {"before_ms", r.outcome.result.before.time_ms},
                   {"after_ms", r.outcome.result.after.time_ms},
                   {"before_kernels", r.outcome.result.before.kernels},
                   {"after_kernels", r.outcome.result.after.kernels}}},
                 {"check",
                  {{"checked", r.outcome.check.checked},
                   {"passed", r.outcome.check.passed},
                   {"engine", r.outcome.check.engine},
                   {"why_not", r.outcome.check.why_not},
                   {"draws", r.outcome.check.draws},
                   {"outputs", outputs}}},
                 {"latency_note", r.outcome.latency_note},
                 {"seconds", r.seconds},
                 {"peak_memory_mb", peak_memory_mb()}};
  if (r.outcome.latency)
    report["latency"] = {{"before_ms", r.outcome.latency->before_ms},
                         {"after_ms", r.outcome.latency->after_ms},
                         {"speedup", r.outcome.latency->speedup}};
  if (const auto& p = r.outcome.plan_latency)
    report["plan_latency"] = {{"measured_costs_ms", p->measured_ms},
                              {"analytic_costs_ms", p->analytic_ms},
                              {"ratio", p->ratio},
                              {"kept", p->kept_analytic ? "analytic" : "measured"}};
  if (const RuntimeTimes* times = runtime_times(r.outcome))
    report["runtime"] = {{"runtime", times->runtime},   {"before_ms", times->before_ms},
                         {"after_ms", times->after_ms}, {"speedup", times->speedup},
                         {"noise", times->noise},       {"candidates", times->candidates},
                         {"seconds", times->seconds},   {"kept", times->kept}};
  if (r.outcome.onnx) report["onnx"] = onnx_text(r);
  if (r.outcome.plan) report["plan"] = print_plan(*r.outcome.plan);
  return report.dump(1) + "\n";
}

}  // namespace gopt::cli
