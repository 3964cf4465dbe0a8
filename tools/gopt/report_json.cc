#include "report_json.h"

#include <fstream>

#include "report_parts.h"

namespace gopt::cli {
namespace {

using nlohmann::json;

// High-water mark of this process' resident memory; 0 where the system does not say.
double peak_memory_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) / 1024;
  return 0;
}

json operators_json(const OptimizationReport& r) {
  json operators = json::object();
  for (const auto& [name, count] : operator_counts(r))
    operators[name] = {{"in_file", count.in_file}, {"before", count.before}, {"after", count.after}};
  return operators;
}

json applied_json(const OptimizationReport& r) {
  json applied = json::array();
  for (const AppliedRule& a : r.outcome.result.applied) {
    const ProofRecord& proof = r.outcome.proofs.at(a.rule);
    applied.push_back({{"rule", a.rule},
                       {"content_hash", a.content_hash},
                       {"matched", a.matched_nodes},
                       {"step", a.step},
                       {"replaced", a.replaced},
                       {"made", a.made},
                       {"cost_before_ms", a.cost_before_ms},
                       {"cost_after_ms", a.cost_after_ms},
                       {"proof",
                        {{"definitions", proof.definitions},
                         {"obligations", proof.obligations},
                         {"solver", proof.solver},
                         {"digest", proof.digest}}}});
  }
  return applied;
}

// Those that were applied, each once.
json rules_json(const OptimizationReport& r) {
  json rules = json::object();
  for (const AppliedRule& a : r.outcome.result.applied) {
    if (rules.contains(a.rule)) continue;
    for (const RewriteRule& rule : r.rules)
      if (rule.name == a.rule && rule.content_hash() == a.content_hash) rules[a.rule] = rule_json(rule);
  }
  return rules;
}

json search_json(const OptimizationReport& r) {
  const OptimizeResult& result = r.outcome.result;
  json trajectory = json::array();
  for (const SearchPoint& p : result.trajectory)
    trajectory.push_back(
        {{"step", p.step}, {"seconds", p.seconds}, {"graphs_seen", p.graphs_seen}, {"best_ms", p.best_ms}});
  json trials = json::object();
  for (const RuleTrials& t : result.trials)
    trials[t.rule] = {{"tried", t.tried},       {"improved", t.improved}, {"kept", t.kept},
                      {"too_dear", t.too_dear}, {"known", t.known},       {"did_not_fit", t.did_not_fit}};
  return {{"kind", to_string(r.options.search.search)},
          {"trials", trials},
          {"alpha", r.options.search.alpha},
          {"max_steps", r.options.search.max_steps},
          {"budget_seconds", r.options.search.budget_seconds},
          {"steps", result.steps},
          {"stop_reason", to_string(result.stop_reason)},
          {"rules_offered", r.rules.size()},
          {"rules_tried", result.rules_tried},
          {"graphs_seen", result.graphs_seen},
          {"trajectory", trajectory},
          {"seconds", result.seconds}};
}

json cost_json(const OptimizationReport& r) {
  const OptimizeResult& result = r.outcome.result;
  const Roofline& roofline = r.outcome.roofline;
  return {{"kind", cost_kind(r)},
          {"model", r.options.cost_model == CostModel::Sum ? "sum" : "plan"},
          {"machine", r.outcome.machine},
          {"kernels_timed", r.outcome.kernels_timed},
          {"plans_timed", r.outcome.plans_timed},
          {"timing_seconds", r.outcome.timing_seconds},
          {"before_ms", result.before.time_ms},
          {"after_ms", result.after.time_ms},
          {"before_kernels", result.before.kernels},
          {"after_kernels", result.after.kernels},
          {"roofline",
           {{"gflops", roofline.gflops}, {"gigabytes_per_second", roofline.gbps}, {"launch_us", roofline.launch_us}}}};
}

json differences_json(const std::vector<Difference>& differences) {
  json outputs = json::array();
  for (const Difference& d : differences)
    outputs.push_back({{"output", d.output},
                       {"max_absolute", d.max_absolute},
                       {"max_relative", d.max_relative},
                       {"passed", d.passed},
                       {"note", d.note}});
  return outputs;
}

json check_json(const CheckReport& check, const Tolerance& tolerance) {
  json by_draw = json::array();
  for (size_t k = 0; k < check.differences_of_draw.size(); k++)
    by_draw.push_back({{"inputs", check.draws[k]}, {"outputs", differences_json(check.differences_of_draw[k])}});
  return {{"checked", check.checked},
          {"passed", check.passed},
          {"engine", check.engine},
          {"why_not", check.why_not},
          {"draws", check.draws},
          {"not_drawn", check.not_drawn},
          {"nodes", check.nodes},
          {"nodes_checked", check.nodes_checked},
          {"left_out", check.left_out},
          {"extents", check.extents},
          {"amplified", check.amplified},
          {"of_runtime", check.of_runtime},
          {"outputs", differences_json(check.differences)},
          {"by_draw", by_draw},
          {"rtol", tolerance.relative},
          {"atol", tolerance.absolute}};
}

json passes_json(const OptimizeResult& result) {
  json passes = json::array();
  for (const PassNote& p : result.passes)
    passes.push_back({{"pass", p.pass}, {"changed", p.changed}, {"seconds", p.seconds}});
  return passes;
}

// Of the searches as a whole, by what they were spent on.
json phases_json(const OptimizationReport& r) {
  json phases = json::array();
  for (const Phase& p : r.phases) phases.push_back({{"name", p.name}, {"seconds", p.seconds}, {"times", p.times}});
  return phases;
}

json graphs_json(const OptimizationReport& r) {
  const OptimizeResult& result = r.outcome.result;
  json after = graph_json(result.graph);
  for (size_t node = 0; node < result.origins.size(); node++) after["nodes"][node]["from"] = result.origins[node];
  return {{"before", graph_json(r.before)}, {"after", after}};
}

// What is there only where it was asked for, or could be made.
void add_optional_parts(const OptimizationReport& r, json& report) {
  const Outcome& outcome = r.outcome;
  if (const auto back = earned_back(r))
    report["earned_back"] = {{"runs", back->runs}, {"by", back->is_measured ? "measured" : "estimated"}};
  if (outcome.code_check) report["code_check"] = check_json(*outcome.code_check, r.options.check.tolerance);
  if (outcome.latency)
    report["latency"] = {{"before_ms", outcome.latency->before_ms},
                         {"after_ms", outcome.latency->after_ms},
                         {"speedup", outcome.latency->speedup},
                         {"cached", outcome.latency->is_cached}};
  for (const PlanLatency& p : outcome.plan_latencies)
    report["plan_latencies"].push_back({{"other", p.other},
                                        {"own_ms", p.own_ms},
                                        {"other_ms", p.other_ms},
                                        {"ratio", p.ratio},
                                        {"cached", p.is_cached},
                                        {"kept", p.kept_other ? "other" : "own"}});
  if (const RuntimeTimes* times = runtime_times(r)) {
    report["runtime"] = {{"runtime", times->runtime},
                         {"candidates", times->candidates},
                         {"seconds", times->seconds},
                         {"kept", times->kept}};
    if (times->candidates > 0)  // else nothing was timed
      report["runtime"].update({{"before_ms", times->before_ms},
                                {"after_ms", times->after_ms},
                                {"speedup", times->speedup},
                                {"noise", times->noise}});
  }
  if (const auto& mutants = outcome.mutants) {
    nlohmann::json rules = nlohmann::json::object();
    for (const RewriteRule& rule : mutants->rules) rules[rule.name] = print_rule(rule);
    report["mutants"] = {{"subgraphs", mutants->subgraphs},   {"left_out", mutants->left_out},
                         {"candidates", mutants->candidates}, {"matched", mutants->matched},
                         {"proved", mutants->proved},         {"applied", applied_mutants(r)},
                         {"alphabets", mutants->alphabets},   {"rules", rules},
                         {"seconds", mutants->seconds}};
  }
  if (outcome.onnx) report["onnx"] = onnx_text(r);
  if (outcome.plan) {
    report["plan"] = print_plan(*outcome.plan);
    for (const ExternalOperator& own : external_operators(*outcome.plan))
      report["to_register"].push_back({{"operator", own.name}, {"nodes", own.nodes}});
  }
  report["plans"] = {{"note", outcome.plan_note}};
  if (outcome.original_plan) report["plans"]["before"] = plan_json(*outcome.original_plan);
  if (outcome.plan) report["plans"]["after"] = plan_json(*outcome.plan);
}

}  // namespace

json report_json(const OptimizationReport& r) {
  json refused = json::array();
  for (const RefusedRule& rule : r.outcome.refused) refused.push_back({{"rule", rule.rule}, {"why", rule.why}});
  json report = {{"model", r.model},
                 {"output", r.output},
                 {"emitted", r.emitted},
                 {"operators", operators_json(r)},
                 {"graphs", graphs_json(r)},
                 {"applied", applied_json(r)},
                 {"rules", rules_json(r)},
                 {"refused", refused},
                 {"notes", r.outcome.notes},
                 {"passes", passes_json(r.outcome.result)},
                 {"search", search_json(r)},
                 {"cost", cost_json(r)},
                 {"check", check_json(r.outcome.check, r.options.check.tolerance)},
                 {"latency_note", r.outcome.latency_note},
                 {"phases", phases_json(r)},
                 {"seconds", r.seconds},
                 {"peak_memory_mb", peak_memory_mb()}};
  add_optional_parts(r, report);
  return report;
}

std::string json_text(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

}  // namespace gopt::cli
