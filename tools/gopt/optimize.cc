#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "commands.h"
#include "confirm_rule.h"
#include "gopt/codegen.h"
#include "gopt/onnx.h"
#include "gopt/optimizer.h"
#include "measured_costs.h"
#include "model.h"
#include "report.h"
#include "rule_files.h"
#include "statistics.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

struct OptimizeOptions {
  std::string input, output, emit, report, target = "cpu", search = "backtracking", cost = "analytic", check = "auto",
                                           budget = "60s", cache;
  std::vector<std::string> rules, shapes, enable, disable, allow;
  int threads = 1, steps = 1000, runs = 15;
  double alpha = 1.05;
  uint64_t seed = 0;
  Tolerance tolerance;
  bool dry_run = false, force = false, measure = true, quiet = false;
  Hold hold;
};

std::atomic<bool> interrupted{false};
void on_interrupt(int) { interrupted = true; }

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Result<double> parse_budget(const std::string& text) {
  size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
  }
  const std::string unit = value < 0 ? "" : text.substr(used);
  const double scale = unit == "ms"                  ? 1e-3
                       : unit == "s" || unit.empty() ? 1
                       : unit == "m"                 ? 60
                       : unit == "h"                 ? 3600
                                                     : 0;
  if (!(value >= 0) || !(value < 1e9) || scale == 0)
    return Error{"--budget " + text + ": expected a time such as 60s, 500ms or 2m"};
  return value * scale;
}

// Everything that can be refused is refused before any work is done.
Status check_outputs(const OptimizeOptions& o) {
  auto is_tolerance = [](double t) { return std::isfinite(t) && t >= 0; };
  if (!is_tolerance(o.tolerance.relative) || !is_tolerance(o.tolerance.absolute))
    return Error{"--rtol and --atol are numbers, not negative"};
  if (!std::isfinite(o.alpha) || o.alpha < 1) return Error{"--alpha is a number, 1 or more"};
  if (!o.dry_run && o.output.empty() && o.emit.empty() && o.report.empty())
    return Error{"nothing to write: give -o FILE.onnx, --emit DIR, --report FILE or --dry-run"};
  for (const std::string& path : {o.output, o.emit, o.report})
    if (!path.empty()) GOPT_RETURN_IF_ERROR(check_writable(path, o.force));
  std::error_code error;
  if (!o.output.empty() && std::filesystem::equivalent(o.input, o.output, error) && !error)
    return Error{o.output + " is the input itself; write to another file"};
  if (o.target == "onnx" && !o.emit.empty())
    return Error{"--emit writes code for --target cpu or cuda; --target onnx has none"};
  return Unit{};
}

// The names of the marks that no rule may have unasked.
std::string unsafe_marks() {
  std::string names;
  for (const MarkInfo& mark : all_marks())
    if (!mark.is_safe) names += (names.empty() ? "" : ", ") + std::string(mark.name);
  return names;
}

// Marks that rules may have although they are not safe.
Result<RuleMarks> parse_allowed(const std::vector<std::string>& names) {
  RuleMarks allowed;
  for (const std::string& name : names) {
    const MarkInfo* mark = find_mark(name);
    if (!mark || mark->is_safe) return Error{"--allow " + name + ": expected one of " + unsafe_marks()};
    allowed.*(mark->flag) = true;
  }
  return allowed;
}

Result<SearchOptions> search_options(const OptimizeOptions& o) {
  SearchOptions s;
  s.search = o.search == "none"     ? SearchKind::None
             : o.search == "greedy" ? SearchKind::Greedy
                                    : SearchKind::Backtracking;
  s.alpha = o.alpha;
  s.max_steps = o.steps;
  GOPT_ASSIGN_OR_RETURN(s.budget_seconds, parse_budget(o.budget));
  const std::vector<std::string>& passes = pass_names();
  auto is_pass = [&](const std::string& name) { return std::find(passes.begin(), passes.end(), name) != passes.end(); };
  for (const std::string& name : o.disable) (is_pass(name) ? s.disabled_passes : s.disabled_rules).push_back(name);
  for (const std::string& name : o.enable)
    if (!is_pass(name)) s.enabled_rules.push_back(name);
  GOPT_ASSIGN_OR_RETURN(s.allowed_marks, parse_allowed(o.allow));
  s.stop = &interrupted;
  const bool is_shown = !o.quiet && isatty(2);
  if (is_shown || o.hold.is_set())
    s.progress = [is_shown, hold = o.hold, steps = size_t{0}](const std::string& line) mutable {
      if (is_shown) fmt::print(stderr, "\r\033[K{}", line);
      if (line.rfind("step ", 0) == 0) hold.after(++steps);
    };
  return s;
}

// Makes kernel costs as --cost asks; with measured ones, the cache and the plan that calibrates what it lacks.
struct CostSource {
  std::shared_ptr<KernelCache> cache;
  std::optional<Plan> calibration;

  std::unique_ptr<KernelCosts> make() const {
    auto analytic = analytic_kernel_costs({});
    return cache ? cached_kernel_costs(cache, std::move(analytic), *calibration) : std::move(analytic);
  }
};

Target target_of(const OptimizeOptions& o) {
  return {o.target == "cuda" ? TargetKind::Cuda : TargetKind::Cpu, o.threads};
}

// Original and optimized code, timed in turns on this machine.
Result<MeasuredLatency> measure(const Graph& before, const Graph& after, const OptimizeOptions& o) {
  const LoadOptions load{"cpu", o.threads, {}};
  GOPT_ASSIGN_OR_RETURN(std::unique_ptr<Model> a, load_graph(before, o.input, load));
  GOPT_ASSIGN_OR_RETURN(std::unique_ptr<Model> b, load_graph(after, o.input + ", optimized", load));
  GOPT_ASSIGN_OR_RETURN(auto inputs, a->draw(o.seed));
  GOPT_ASSIGN_OR_RETURN(auto warm_a, a->time(inputs, 2, 1));
  GOPT_ASSIGN_OR_RETURN(auto warm_b, b->time(inputs, 2, 1));
  std::vector<double> ta, tb, ratios;
  for (int k = 0; k < o.runs; k++) {
    GOPT_ASSIGN_OR_RETURN(auto one, a->time(inputs, 0, 1));
    GOPT_ASSIGN_OR_RETURN(auto other, b->time(inputs, 0, 1));
    ta.push_back(one[0]);
    tb.push_back(other[0]);
    ratios.push_back(one[0] / other[0]);
  }
  return MeasuredLatency{median(ta), median(tb), median(ratios)};
}

// Emits the faster of the two graphs; says which, and why where it was not measured.
Status emit_code(const Graph& before, const OptimizeOptions& o, const CostSource& source, OptimizationReport& report) {
  const Graph* chosen = &report.result.graph;
  if (o.target == "cpu" && o.measure && !report.result.graph.same_as(before) &&
      report.result.graph.hash() != before.hash()) {
    auto latency = measure(before, report.result.graph, o);
    if (latency.ok())
      report.latency = *latency;
    else
      report.latency_note = "not measured: " + latency.error().message;
    constexpr double kNoise = 0.98;  // medians of interleaved runs repeat within two in a hundred
    if (report.latency && report.latency->speedup < kNoise) {
      chosen = &before;
      report.latency_note = "the unrewritten graph was faster and is what was emitted";
    }
  } else if (o.target == "cuda") {
    report.latency_note = "not measured: CUDA code is timed on a machine with a GPU";
  }
  const auto costs = source.make();
  GOPT_ASSIGN_OR_RETURN(Plan plan, make_plan(*chosen, target_of(o), *costs));
  GOPT_ASSIGN_OR_RETURN(EmittedCode code, emit(plan));
  GOPT_RETURN_IF_ERROR(write_emitted(code, o.emit, o.force));
  report.emitted = o.emit;
  return Unit{};
}

// The optimized model; the unrewritten one where a rewrite made what the model's own opset cannot say.
Status write_onnx(const Graph& before, const OptimizeOptions& o, OptimizationReport& report) {
  const Status written = export_onnx(report.result.graph, o.output, {.force = o.force});
  report.output = o.output;
  if (written.ok() || report.result.graph.hash() == before.hash()) return written;
  GOPT_RETURN_IF_ERROR(export_onnx(before, o.output, {.force = o.force}));
  fmt::print(stderr, "gopt: warning: {}; the unrewritten model was written\n", written.error().message);
  report.result.graph = before;
  report.result.applied.clear();
  return Unit{};
}

Status write_outputs(const Graph& before, const OptimizeOptions& o, const CostSource& source,
                     OptimizationReport& report) {
  if (o.dry_run) return Unit{};
  if (!o.output.empty()) GOPT_RETURN_IF_ERROR(write_onnx(before, o, report));
  if (!o.emit.empty()) GOPT_RETURN_IF_ERROR(emit_code(before, o, source, report));
  return Unit{};
}

// The --cache file, or the default one, whose folder is made.
Result<std::string> cache_path(const std::string& given) {
  if (!given.empty()) return given;
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (!cache && !home) return Error{"no folder for measured times: set HOME, or give --cache FILE"};
  const std::filesystem::path folder =
      (cache ? std::filesystem::path(cache) : std::filesystem::path(home) / ".cache") / "gopt";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{folder.string() + " cannot be made: " + error.message() + "; give --cache FILE"};
  return (folder / "kernel_times").string();
}

// With measured costs: the original's kernels, measured, calibrate the rest.
Result<CostSource> cost_source(const Graph& graph, const OptimizeOptions& o) {
  CostSource source;
  if (o.cost != "measured") return source;
  if (o.target != "cpu") return Error{"--cost measured times kernels on this machine's CPU; use it with --target cpu"};
  GOPT_ASSIGN_OR_RETURN(const std::string path, cache_path(o.cache));
  GOPT_ASSIGN_OR_RETURN(KernelCache cache, KernelCache::load(path, machine_name()));
  auto analytic = analytic_kernel_costs({});
  GOPT_ASSIGN_OR_RETURN(const int added, measure_kernels(graph, target_of(o), *analytic, cache, o.seed));
  if (added > 0) GOPT_RETURN_IF_ERROR(cache.save());
  source.cache = std::make_shared<KernelCache>(std::move(cache));
  GOPT_ASSIGN_OR_RETURN(source.calibration, make_plan(graph, target_of(o), *analytic));
  return source;
}

// A rule is relied on where it is proved here and now, whatever its record says.
std::optional<std::string> confirm(const RewriteRule& rule, RuleConfirmer& confirmer, OptimizationReport& report) {
  const Confirmation& found = confirmer.confirm(rule);
  if (!found.proof) return found.why_not;
  if (report.proofs.insert_or_assign(rule.name, *found.proof).second && record_differs(rule, *found.proof))
    report.notes.push_back(fmt::format(
        "rule `{}` is proved, but not as its record says; `rulegen verify --write` makes the record anew", rule.name));
  return std::nullopt;
}

// What was refused once stays out.
void note_refused(OptimizationReport& report, SearchOptions& options) {
  for (const RefusedRule& refused : report.result.refused) {
    options.disabled_rules.push_back(refused.rule);
    report.refused.push_back(refused);
    report.notes.push_back(fmt::format("rule `{}` is not applied, although its record says that it is proved: {}",
                                       refused.rule, refused.why));
  }
}

// One search; with measured costs, again as long as its result has kernels that were never timed: a result stands on
// measured kernels alone, or on what a few rounds could measure.
Status search(const Graph& graph, const std::vector<RewriteRule>& rules, const OptimizeOptions& o,
              const CostSource& source, OptimizationReport& report) {
  constexpr int kRounds = 4;
  RuleConfirmer confirmer;
  SearchOptions options = report.search;
  options.confirm = [&](const RewriteRule& rule) { return confirm(rule, confirmer, report); };
  for (int round = 0; round < kRounds; round++) {
    auto oracle = plan_cost_oracle(target_of(o), source.make());
    GOPT_ASSIGN_OR_RETURN(report.result, optimize(graph, rules, *oracle, options));
    note_refused(report, options);
    if (!source.cache || interrupted) break;
    const auto costs = source.make();
    GOPT_ASSIGN_OR_RETURN(const int added,
                          measure_kernels(report.result.graph, target_of(o), *costs, *source.cache, o.seed));
    if (added == 0) break;
    GOPT_RETURN_IF_ERROR(source.cache->save());
  }
  return Unit{};
}

std::string names_of(const std::set<std::string>& rules) {
  std::string text;
  for (const std::string& rule : rules) text += (text.empty() ? "`" : ", `") + rule + "`";
  return text;
}

// A search whose result agrees with the original. One that does not is not kept: the rules that it applied are left
// out and the search is made again; in the end the model stays as it was.
Status search_and_check(const Graph& graph, const std::vector<RewriteRule>& rules, const OptimizeOptions& o,
                        const CostSource& source, OptimizationReport& report) {
  constexpr int kTries = 4;
  for (int attempt = 0; attempt < kTries; attempt++) {
    GOPT_RETURN_IF_ERROR(search(graph, rules, o, source, report));
    report.check = check_equal(graph, report.result.graph,
                               {o.check, o.threads, o.seed + 1, o.tolerance, report.result.before.operations});
    if (!report.check.checked && o.check != "off" && !report.result.applied.empty())
      report.notes.push_back("the result is not checked: " + report.check.why_not);
    if (!report.check.checked || report.check.passed) return Unit{};
    std::set<std::string> applied;
    for (const AppliedRule& a : report.result.applied) applied.insert(a.rule);
    const std::string on = "the optimized model does not agree with the original on " + report.check.draws.back() +
                           " random inputs (--rtol and --atol say how closely it must)";
    if (applied.empty()) {
      report.notes.push_back(on + ": it is left as it was");
      break;
    }
    report.notes.push_back(on + ": it is searched again without " + names_of(applied));
    report.search.disabled_rules.insert(report.search.disabled_rules.end(), applied.begin(), applied.end());
  }
  report.result.graph = graph;
  report.result.after = report.result.before;
  report.result.applied.clear();
  report.check =
      check_equal(graph, graph, {o.check, o.threads, o.seed + 1, o.tolerance, report.result.before.operations});
  return Unit{};
}

Status optimize_model(const OptimizeOptions& o) {
  const auto start = std::chrono::steady_clock::now();
  GOPT_RETURN_IF_ERROR(check_outputs(o));
  GOPT_ASSIGN_OR_RETURN(std::vector<RewriteRule> rules, load_rule_files(o.rules));
  OptimizationReport report{.model = o.input, .rules = rules, .cost = o.cost};
  GOPT_ASSIGN_OR_RETURN(report.search, search_options(o));
  ImportOptions import;
  GOPT_ASSIGN_OR_RETURN(import.shapes, parse_shapes(o.shapes));
  GOPT_ASSIGN_OR_RETURN(ImportedModel model, import_onnx(o.input, import));
  for (const std::string& warning : model.warnings) fmt::print(stderr, "gopt: warning: {}\n", warning);
  report.before = model.graph;

  std::signal(SIGINT, on_interrupt);
  GOPT_ASSIGN_OR_RETURN(CostSource source, cost_source(model.graph, o));
  GOPT_RETURN_IF_ERROR(search_and_check(model.graph, rules, o, source, report));
  std::signal(SIGINT, SIG_DFL);
  if (report.search.progress) fmt::print(stderr, "\r\033[K");
  for (const std::string& note : report.notes) fmt::print(stderr, "gopt: warning: {}\n", note);
  GOPT_RETURN_IF_ERROR(write_outputs(model.graph, o, source, report));
  report.seconds = seconds_since(start);
  if (!o.report.empty() && !o.dry_run) GOPT_RETURN_IF_ERROR(write_text(o.report, report_json(report), o.force));
  print_report(report);
  return Unit{};
}

}  // namespace

Action add_optimize(CLI::App& app, const Hold& hold) {
  auto o = std::make_shared<OptimizeOptions>();
  o->hold = hold;
  app.add_option("model", o->input, "an ONNX file")->required();
  app.add_option("-o,--output", o->output, "write the optimized model to FILE.onnx");
  app.add_option("--emit", o->emit, "write code to the folder DIR");
  app.add_option("--target", o->target, "cpu, cuda or onnx")
      ->check(CLI::IsMember({"cpu", "cuda", "onnx"}))
      ->capture_default_str();
  app.add_option("--report", o->report, "write what was done to FILE.json");
  app.add_option("--rules", o->rules, "rules files; those that gopt ships where none is given");
  app.add_option("--search", o->search, "backtracking, greedy or none")
      ->check(CLI::IsMember({"backtracking", "greedy", "none"}))
      ->capture_default_str();
  app.add_option("--budget", o->budget, "time for the search: 60s, 500ms, 2m")->capture_default_str();
  app.add_option("--steps", o->steps, "graphs expanded at most")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--alpha", o->alpha, "keep graphs below alpha x the best cost")
      ->check(CLI::Range(1.0, 100.0))
      ->capture_default_str();
  app.add_option("--enable", o->enable, "only these rules, whatever their marks");
  app.add_option("--disable", o->disable, "without these rules or passes");
  app.add_option("--allow", o->allow, "also rules with these marks: " + unsafe_marks());
  app.add_option("--cost", o->cost, "analytic, or measured: kernels are built and timed here, once each")
      ->check(CLI::IsMember({"analytic", "measured"}))
      ->capture_default_str();
  app.add_option("--cache", o->cache,
                 "file of measured kernel times (default: gopt/kernel_times under the user's cache folder)");
  app.add_option("--threads", o->threads, "threads of the emitted code")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--shape", o->shapes, "NAME=1x3x224x224: fixes an input's symbolic extents, or changes its batch");
  app.add_option("--check", o->check, "how the result is checked: auto, interpreter, cpu or off")
      ->check(CLI::IsMember({"auto", "interpreter", "cpu", "off"}))
      ->capture_default_str();
  app.add_option("--seed", o->seed, "seed of the inputs that it is checked and timed on")->capture_default_str();
  app.add_option("--rtol", o->tolerance.relative, "of the largest magnitude of an output")->capture_default_str();
  app.add_option("--atol", o->tolerance.absolute, "absolute tolerance")->capture_default_str();
  app.add_option("--runs", o->runs, "timed runs of original and optimized code each")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("!--no-measure", o->measure, "do not time the emitted code against the original's");
  app.add_flag("--dry-run", o->dry_run, "write nothing");
  app.add_flag("--force", o->force, "overwrite existing files");
  return [o] { return optimize_model(*o); };
}

}  // namespace gopt::cli
