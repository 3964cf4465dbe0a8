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
#include <thread>

#include "commands.h"
#include "gopt/codegen.h"
#include "gopt/driver.h"
#include "gopt/onnx.h"
#include "model.h"
#include "report_json.h"
#include "report_page.h"
#include "rule_files.h"
#include "runtime_flags.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

struct OptimizeOptions {
  std::string input, output, emit, target, search = "backtracking", cost = "auto", check = "auto", budget = "60s",
                                           cache, gpu;
  std::vector<std::string> reports, rules, shapes, enable, disable, allow;
  int threads = 1, steps = 1000, runs = 15, workers = 0;
  double alpha = 1.05;
  uint64_t seed = 0;
  Tolerance tolerance;
  RuntimeFlags runtime;
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

bool is_page(const std::string& report) { return std::filesystem::path(report).extension() == ".html"; }

Status check_reports(const OptimizeOptions& o) {
  for (const std::string& report : o.reports) {
    if (std::filesystem::path(report).extension() != ".json" && !is_page(report))
      return Error{"--report " + report + ": the name ends in .html, for a page to look at, or .json, for programs"};
    GOPT_RETURN_IF_ERROR(check_writable(report, o.force));
  }
  return Unit{};
}

// Files that are written. Large weights go beside the model.
std::vector<std::string> written_files(const OptimizeOptions& o) {
  std::vector<std::string> files = o.reports;
  if (!o.output.empty()) files.insert(files.end(), {o.output, o.output + ".data"});
  return files;
}

// Everything that can be refused is refused before any work is done.
Status check_outputs(const OptimizeOptions& o) {
  auto is_tolerance = [](double t) { return std::isfinite(t) && t >= 0; };
  if (!is_tolerance(o.tolerance.relative) || !is_tolerance(o.tolerance.absolute))
    return Error{"--rtol and --atol are numbers, not negative"};
  if (!std::isfinite(o.alpha) || o.alpha < 1) return Error{"--alpha is a number, 1 or more"};
  if (!o.dry_run && o.output.empty() && o.emit.empty() && o.reports.empty())
    return Error{"nothing to write: give -o FILE.onnx, --emit DIR, --report FILE or --dry-run"};
  if (!o.output.empty()) GOPT_RETURN_IF_ERROR(check_writable(o.output, o.force));
  GOPT_RETURN_IF_ERROR(check_reports(o));
  if (!o.emit.empty()) GOPT_RETURN_IF_ERROR(check_emit_folder(o.emit, o.force));
  std::vector<std::string> written = written_files(o);
  written.push_back(o.emit);
  GOPT_RETURN_IF_ERROR(check_distinct(written, o.rules));
  if (o.target == "onnx" && !o.emit.empty())
    return Error{"--emit writes code for --target cpu or cuda; --target onnx has none"};
  return check_runtime_flags(o.runtime, !o.output.empty());
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
  s.workers = o.workers > 0 ? o.workers : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
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

CheckEngine check_engine(const std::string& name) {
  return name == "off"           ? CheckEngine::Off
         : name == "cpu"         ? CheckEngine::Cpu
         : name == "interpreter" ? CheckEngine::Interpreter
                                 : CheckEngine::Auto;
}

// Where only the ONNX file is asked for, it is what the costs are for.
TargetKind target_kind(const OptimizeOptions& o) {
  const bool is_for_runtime = o.target.empty() && !o.output.empty() && o.emit.empty() && o.cost != "measured";
  if (o.target == "onnx" || is_for_runtime) return TargetKind::Onnx;
  return o.target == "cuda" ? TargetKind::Cuda : TargetKind::Cpu;
}

std::string to_string(TargetKind kind) {
  switch (kind) {
    case TargetKind::Cpu: return "cpu";
    case TargetKind::Cuda: return "cuda";
    case TargetKind::Onnx: return "onnx";
  }
  return "";
}

Result<DriverOptions> driver_options(const OptimizeOptions& o) {
  DriverOptions d;
  d.target = {target_kind(o), o.threads};
  GOPT_ASSIGN_OR_RETURN(d.search, search_options(o));
  d.measured_costs = o.cost == "measured" || (o.cost == "auto" && d.target.kind != TargetKind::Onnx);
  if (d.measured_costs && d.target.kind == TargetKind::Onnx)
    return Error{"--cost measured is of kernels for --target cpu or cuda; --target onnx has none"};
  if (!o.gpu.empty() && (d.target.kind != TargetKind::Cuda || !d.measured_costs))
    return Error{"--gpu says whose kernel times a plan for --target cuda is made by; it does not go with --target " +
                 to_string(d.target.kind) + " --cost " + o.cost};
  if (d.measured_costs) {
    GOPT_ASSIGN_OR_RETURN(d.cache, cache_path(o.cache));
  }
  d.gpu = o.gpu;
  d.check = {check_engine(o.check), o.tolerance};
  d.seed = o.seed;
  d.wants_code = !o.emit.empty() && !o.dry_run;
  d.wants_plans = !o.reports.empty() && !o.dry_run;
  d.times_code = o.measure;
  d.runs = o.runs;
  d.wants_onnx = !o.output.empty();
  if (o.runtime.is_given()) {
    GOPT_ASSIGN_OR_RETURN(d.timer, make_timer(o.runtime, o.threads, o.seed));
  }
  if (!o.output.empty() && !o.dry_run) d.is_writable = check_exportable;
  return d;
}

// The model and its code, both of the graph that was chosen.
Status write_outputs(const OptimizeOptions& o, const Outcome& outcome, OptimizationReport& report) {
  if (o.dry_run) return Unit{};
  if (!o.emit.empty()) {
    GOPT_ASSIGN_OR_RETURN(const EmittedCode code, emit(*outcome.plan));
    GOPT_RETURN_IF_ERROR(write_emitted(code, o.emit, o.force));
    report.emitted = o.emit;
  }
  if (!o.output.empty()) {
    GOPT_RETURN_IF_ERROR(export_onnx(outcome.onnx_graph(), o.output, {.force = o.force}));
    report.output = o.output;
  }
  return Unit{};
}

// What is read is never written, with --force neither.
Status check_keeps_inputs(const ImportedModel& model, const OptimizeOptions& o) {
  for (const std::string& written : written_files(o)) {
    for (const std::string& read : model.files) {
      std::error_code error;
      if (std::filesystem::equivalent(read, written, error) && !error)
        return Error{written + (read == o.input ? " is the input itself" : " holds weights of the input") +
                     "; write to another file"};
    }
  }
  return Unit{};
}

Result<std::vector<RewriteRule>> read_rules(const OptimizeOptions& o, PhaseClock& clock) {
  const PhaseClock::Running running(clock, "reading rules");
  return load_rule_files(o.rules);
}

Result<ImportedModel> read_model(const OptimizeOptions& o, PhaseClock& clock) {
  const PhaseClock::Running running(clock, "reading the model");
  ImportOptions import;
  GOPT_ASSIGN_OR_RETURN(import.shapes, parse_shapes(o.shapes));
  return import_onnx(o.input, import);
}

Status write_reports(const OptimizeOptions& o, const OptimizationReport& report) {
  if (o.reports.empty() || o.dry_run) return Unit{};
  const nlohmann::json json = report_json(report);
  for (const std::string& path : o.reports) {
    const std::string text = is_page(path) ? report_page(json) : json_text(json, 1) + "\n";
    GOPT_RETURN_IF_ERROR(write_text(path, text, o.force));
  }
  return Unit{};
}

Status optimize_model(const OptimizeOptions& o) {
  const auto start = std::chrono::steady_clock::now();
  PhaseClock clock;
  GOPT_RETURN_IF_ERROR(check_outputs(o));
  GOPT_ASSIGN_OR_RETURN(const std::vector<RewriteRule> rules, read_rules(o, clock));
  GOPT_ASSIGN_OR_RETURN(const DriverOptions options, driver_options(o));
  GOPT_ASSIGN_OR_RETURN(const ImportedModel model, read_model(o, clock));
  GOPT_RETURN_IF_ERROR(check_keeps_inputs(model, o));
  for (const std::string& warning : model.warnings) fmt::print(stderr, "gopt: warning: {}\n", warning);

  std::signal(SIGINT, on_interrupt);
  GOPT_ASSIGN_OR_RETURN(const Outcome outcome, optimize_graph(model.graph, rules, options));
  std::signal(SIGINT, SIG_DFL);
  if (options.search.progress) fmt::print(stderr, "\r\033[K");
  for (const std::string& note : outcome.notes) fmt::print(stderr, "gopt: warning: {}\n", note);
  OptimizationReport report{
      .model = o.input, .before = model.graph, .rules = rules, .options = options, .outcome = outcome};
  {
    const PhaseClock::Running running(clock, "writing");
    GOPT_RETURN_IF_ERROR(write_outputs(o, outcome, report));
  }
  report.seconds = seconds_since(start);
  report.phases = clock.phases();
  report.phases.insert(report.phases.end() - 1, outcome.phases.begin(), outcome.phases.end());
  GOPT_RETURN_IF_ERROR(write_reports(o, report));
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
  app.add_option("--target", o->target,
                 "what the costs are for: cpu, cuda, or onnx, a runtime that runs the file (default: onnx where -o is "
                 "given without --emit, else cpu)")
      ->check(CLI::IsMember({"cpu", "cuda", "onnx"}));
  app.add_option("--report", o->reports, "write what was done to FILE.html, a page, or FILE.json; may be given twice")
      ->allow_extra_args(false);
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
  app.add_option(
         "--cost", o->cost,
         "analytic; measured: kernels are built and timed here, once each; auto: measured where they can be, or "
         "the cache has times of a GPU")
      ->check(CLI::IsMember({"auto", "analytic", "measured"}))
      ->capture_default_str();
  app.add_option("--cache", o->cache,
                 "file of measured kernel times (default: gopt/kernel_times under the user's cache folder)");
  app.add_option("--gpu", o->gpu, "part of the name of the GPU whose times in the cache --target cuda plans by");
  app.add_option("--threads", o->threads, "threads of the emitted code")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--workers", o->workers,
                 "threads of the search, which finds the same with any number; 0: one a processor")
      ->check(CLI::Range(0, 1024))
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
  add_runtime_flags(app, o->runtime);
  app.add_flag("--dry-run", o->dry_run, "write nothing");
  app.add_flag("--force", o->force, "overwrite existing files");
  return [o] { return optimize_model(*o); };
}

}  // namespace gopt::cli
