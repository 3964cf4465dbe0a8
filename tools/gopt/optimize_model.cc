#include "optimize_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "emit_pieces.h"
#include "gopt/clock.h"
#include "gopt/codegen.h"
#include "gopt/sized_plans.h"
#include "import_for_code.h"
#include "model.h"
#include "report_json.h"
#include "report_page.h"
#include "sizes.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

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
  if (!o.mutate_rules.empty()) files.push_back(o.mutate_rules);
  if (!o.output.empty()) files.insert(files.end(), {o.output, o.output + ".data"});
  return files;
}

// Everything that can be refused is refused before any work is done.
Status check_outputs(const OptimizeOptions& o) {
  if (!o.output.empty()) GOPT_RETURN_IF_ERROR(check_writable(o.output, o.force));
  GOPT_RETURN_IF_ERROR(check_reports(o));
  if (!o.mutate_rules.empty()) GOPT_RETURN_IF_ERROR(check_writable(o.mutate_rules, o.force));
  if (!o.emit.empty()) GOPT_RETURN_IF_ERROR(check_emit_folder(o.emit, o.force));
  std::vector<std::string> written = written_files(o);
  written.push_back(o.emit);
  written.push_back(o.cache);
  GOPT_ASSIGN_OR_RETURN(const std::vector<std::string> rules, rule_files(o.rules));
  GOPT_RETURN_IF_ERROR(check_distinct(written, rules));
  if (o.emit.empty() && o.prefix != OptimizeOptions().prefix)
    return Error{"--prefix is of the code that --emit writes: give --emit DIR, too"};
  if (!is_prefix(o.prefix))
    return Error{"--prefix " + o.prefix + ": expected letters, digits and single underscores, a letter first"};
  if (o.target == "onnx" && o.wants_code())
    return Error{"--emit writes code for --target cpu or cuda; --target onnx has none"};
  return check_runtime_flags(o.runtime, o.wants_onnx());
}

// Where only the ONNX file is asked for, it is what the costs are for.
TargetKind default_target(const OptimizeOptions& o) {
  const bool is_for_runtime = o.wants_onnx() && !o.wants_code() && o.cost != "measured";
  return is_for_runtime ? TargetKind::Onnx : TargetKind::Cpu;
}

Result<DriverOptions> options_of(const OptimizeOptions& o, const Observer& observer) {
  GOPT_ASSIGN_OR_RETURN(DriverOptions d, driver_options(o, default_target(o)));
  d.search.progress = observer.progress;
  d.search.improved = observer.improved;
  d.search.stop = observer.stop;
  d.wants_code = o.wants_code() && !o.dry_run;
  d.target.calls_functions = o.wants_code() && d.target.kind == TargetKind::Cpu;
  d.wants_plans = (o.takes_model || !o.reports.empty()) && !o.dry_run;  // a report has them
  d.times_code = o.measure;
  d.runs = o.runs;
  GOPT_ASSIGN_OR_RETURN(d.mutation_seconds, parse_time("--mutate", o.mutate));
  d.only_unmarked_mutants = o.safe;
  if (!o.mutate_rules.empty() && d.mutation_seconds == 0)
    return Error{"--mutate-rules writes what --mutate finds: give a time, --mutate 60s, too"};
  d.wants_onnx = o.wants_onnx();
  if (o.runtime.is_given()) {
    GOPT_ASSIGN_OR_RETURN(d.timer, make_timer(o.runtime, o.threads, o.seed));
  }
  if (o.wants_onnx() && !o.dry_run) d.is_writable = check_exportable;
  if (d.check.engine == CheckEngine::Files) {
    GOPT_ASSIGN_OR_RETURN(d.check.runner, make_runner(o.runtime));
    d.check.original_file = o.model;
  }
  return d;
}

ExportOptions export_options(const ImportedModel& model, bool force) {
  ExportOptions options{.force = force};
  if (model.files.size() > 1) options.external_above = 0;  // weights that lay beside the model do so again
  return options;
}

// The model and its code, both of the graph that was chosen.
Status stage_outputs(const OptimizeOptions& o, OptimizedModel& optimized, StagedFiles& staged) {
  if (o.dry_run) return Unit{};
  const Outcome& outcome = optimized.outcome;
  if (!o.mutate_rules.empty())
    GOPT_RETURN_IF_ERROR(
        stage_text(o.mutate_rules, print_mutants(outcome.mutants.value_or(FoundMutants{})), o.force, staged));
  if (!o.emit.empty()) {
    GOPT_ASSIGN_OR_RETURN(const EmittedCode code,
                          optimized.pieces ? emit_pieces(*optimized.pieces, o.prefix) : emit(*outcome.plan, o.prefix));
    GOPT_RETURN_IF_ERROR(stage_emitted(code, o.emit, o.force, staged));
    optimized.emitted = o.emit;
  }
  if (!o.output.empty()) {
    GOPT_RETURN_IF_ERROR(stage_onnx(outcome.onnx_graph(), o.output, export_options(optimized.model, o.force), staged));
    optimized.output = o.output;
  }
  return Unit{};
}

// What is read is never written, with --force neither.
Status check_keeps_inputs(const ImportedModel& model, const OptimizeOptions& o) {
  GOPT_RETURN_IF_ERROR(check_cache(o, model));
  std::vector<ReadFile> read = files_read(o, model);
  read.push_back({o.cache, "holds kernel times that are read"});
  GOPT_RETURN_IF_ERROR(check_keeps(read, written_files(o)));
  for (const ReadFile& file : read)
    if (!o.emit.empty() && is_emitted(o.emit, file.path))
      return Error{"--emit " + o.emit + " would replace " + file.path + ", which is read; emit to another folder"};
  return Unit{};
}

Result<std::vector<RewriteRule>> read_rules(const OptimizeOptions& o, const Warn& warn, PhaseClock& clock) {
  const PhaseClock::Running running(clock, "reading rules");
  return load_rule_files(o.rules, warn);
}

// As a file is written of it, or, lowered, as code and its cost are of it.
Result<ImportedModel> read_model(const OptimizeOptions& o, bool lower, PhaseClock& clock) {
  const PhaseClock::Running running(clock, "reading the model");
  ImportOptions import{.lower = lower};
  import.freeze_initializers = o.freeze_initializers || lower;  // code takes all its inputs
  import.ranges_fit = lower;                                    // code for any size refuses sizes at which they do not
  GOPT_ASSIGN_OR_RETURN(import.shapes, parse_shapes(o.shapes));
  if (!lower) return import_onnx(o.model, import);
  // Ranges that end where an open axis does are good for any size of that, where nothing needs their extents as
  // numbers.
  constexpr int64_t kShort = 63;
  // Named sizes may have apart what the code for any size takes to be equal.
  const bool takes_equal = o.wants_code() && o.may_split && o.target != "cuda";
  const auto read = takes_equal ? import_for_any_size : import_onnx;
  ImportOptions cut = import;
  cut.longest_whole_range = kShort;
  GOPT_ASSIGN_OR_RETURN(ImportedModel any, read(o.model, cut));
  if (!any.has_cut_ranges) return any;
  GOPT_ASSIGN_OR_RETURN(ImportedModel whole, read(o.model, import));
  return count_without_code(any.graph) <= count_without_code(whole.graph) ? std::move(any) : std::move(whole);
}

// What is lowered for code is another graph than a file is to hold, which keeps operators whole and defaults of inputs.
Status read_models(const OptimizeOptions& o, OptimizedModel& optimized, PhaseClock& clock) {
  const bool lower = default_target(o) != TargetKind::Onnx;
  GOPT_ASSIGN_OR_RETURN(optimized.model, read_model(o, lower, clock));
  if (!lower || !o.wants_onnx()) return Unit{};
  GOPT_ASSIGN_OR_RETURN(ImportedModel whole, read_model(o, false, clock));
  optimized.options.file_graph = std::move(whole.graph);
  for (std::string& warning : whole.warnings)
    if (!std::ranges::count(optimized.model.warnings, warning)) optimized.model.warnings.push_back(std::move(warning));
  return Unit{};
}

Status stage_reports(const OptimizeOptions& o, const OptimizationReport& report, StagedFiles& staged) {
  if (o.reports.empty() || o.dry_run) return Unit{};
  const nlohmann::json json = report_json(report);
  for (const std::string& path : o.reports) {
    const std::string text = is_page(path) ? report_page(json) : json_text(json, 1) + "\n";
    GOPT_RETURN_IF_ERROR(stage_text(path, text, o.force, staged));
  }
  return Unit{};
}

Result<Extents> parse_maxima(const std::vector<std::string>& words) {
  Extents maxima;
  for (const std::string& word : words) {
    const auto parsed = parse_shapes({word});
    if (!parsed.ok() || parsed->begin()->second.size() != 1) return Error{"--maximum " + word + ": expected SYMBOL=32"};
    if (!maxima.emplace(parsed->begin()->first, parsed->begin()->second[0]).second)
      return Error{"--maximum gives " + parsed->begin()->first + " twice"};
  }
  return maxima;
}

// Code for the CPU is for any size of the extents that are open.
Status keep_open(const OptimizeOptions& o, const Graph& graph, DriverOptions& options) {
  GOPT_ASSIGN_OR_RETURN(const Extents maxima, parse_maxima(o.maxima));
  if (!o.wants_code() || options.target.kind != TargetKind::Cpu) {
    if (!maxima.empty()) return Error{"--maximum is of the code that --emit writes for --target cpu"};
    return Unit{};
  }
  GOPT_ASSIGN_OR_RETURN(options.target.open, open_extents(graph, o.usual, maxima));
  if (!options.target.open.empty()) options.measured_costs = false;  // kernels are timed at fixed sizes
  return Unit{};
}

// Whether some nodes have no code, so that the rest is made in pieces; the user is told of each.
bool is_split(const OptimizeOptions& o, const OptimizedModel& optimized, const Warn& warn) {
  if (!optimized.options.wants_code || !o.may_split) return false;
  Target target = optimized.options.target;
  target.open = own_extents(optimized.model.graph, target);
  const std::vector<NodeWithoutCode> without = nodes_without_code(optimized.model.graph, target);
  if (without.empty()) return false;
  warn("the model is code in pieces: " + why_no_plan(without).message);
  return true;
}

// The whole model is searched by the costs of what has some, then taken to pieces.
Status optimize_in_pieces(const OptimizeOptions& o, OptimizedModel& optimized) {
  GOPT_ASSIGN_OR_RETURN(const Extents maxima, parse_maxima(o.maxima));
  GOPT_RETURN_IF_ERROR(split_model(optimized.model.graph, optimized.options.target));  // that it can be split
  DriverOptions whole = optimized.options;
  whole.wants_code = whole.measured_costs = false;
  GOPT_ASSIGN_OR_RETURN(optimized.outcome, optimize_graph(optimized.model.graph, optimized.rules, whole));
  GOPT_ASSIGN_OR_RETURN(optimized.pieces,
                        make_pieces(optimized.outcome.result.graph, optimized.options, o.usual, maxima));
  return Unit{};
}

Status optimize(const OptimizeOptions& o, const Warn& warn, OptimizedModel& optimized) {
  if (is_split(o, optimized, warn)) return optimize_in_pieces(o, optimized);
  GOPT_RETURN_IF_ERROR(keep_open(o, optimized.model.graph, optimized.options));
  if (o.cost == "measured" && !optimized.options.measured_costs)
    warn("kernels are timed at fixed sizes: of a model whose sizes are open costs are analytic (--shape gives sizes)");
  GOPT_ASSIGN_OR_RETURN(optimized.outcome, optimize_graph(optimized.model.graph, optimized.rules, optimized.options));
  return Unit{};
}

}  // namespace

OptimizationReport OptimizedModel::report() const {
  return {.model = path,
          .output = output,
          .emitted = emitted,
          .before = model.graph,
          .in_file = model.operators,
          .rules = rules,
          .options = options,
          .outcome = outcome,
          .pieces = pieces ? &*pieces : nullptr,
          .prefix = prefix,
          .seconds = seconds,
          .phases = phases};
}

Result<OptimizedModel> optimize_model(const OptimizeOptions& o, const Observer& observer) {
  const auto start = std::chrono::steady_clock::now();
  const Warn warn = observer.warn ? observer.warn : [](const std::string&) {};
  PhaseClock clock;
  GOPT_RETURN_IF_ERROR(check_outputs(o));
  OptimizedModel optimized;
  optimized.path = o.model;
  optimized.prefix = o.prefix;
  GOPT_ASSIGN_OR_RETURN(optimized.rules, read_rules(o, warn, clock));
  GOPT_ASSIGN_OR_RETURN(optimized.options, options_of(o, observer));
  GOPT_RETURN_IF_ERROR(read_models(o, optimized, clock));
  GOPT_RETURN_IF_ERROR(complete_options(o, optimized.rules, optimized.model.graph, optimized.options));
  GOPT_RETURN_IF_ERROR(check_keeps_inputs(optimized.model, o));
  for (const std::string& warning : optimized.model.warnings) warn(warning);

  auto searching = observer.searching ? observer.searching() : nullptr;
  GOPT_RETURN_IF_ERROR(optimize(o, warn, optimized));
  searching.reset();
  if (const auto& mutants = optimized.outcome.mutants)
    optimized.rules.insert(optimized.rules.end(), mutants->rules.begin(), mutants->rules.end());
  for (const std::string& note : optimized.outcome.notes) warn(note);
  StagedFiles staged;
  {
    const PhaseClock::Running running(clock, "writing");
    GOPT_RETURN_IF_ERROR(stage_outputs(o, optimized, staged));
  }
  optimized.seconds = seconds_since(start);
  optimized.phases = clock.phases();
  const std::vector<Phase>& inner = optimized.outcome.phases;
  optimized.phases.insert(optimized.phases.end() - 1, inner.begin(), inner.end());
  GOPT_RETURN_IF_ERROR(stage_reports(o, optimized.report(), staged));
  GOPT_RETURN_IF_ERROR(staged.commit());
  return optimized;
}

namespace {

// One run for each size has neither reports nor an ONNX file, which keeps its open extents.
Status check_specialized(const OptimizeOptions& o) {
  GOPT_RETURN_IF_ERROR(check_outputs(o));
  if (o.wants_onnx())
    return Error{
        "--specialize is of the code that --emit writes; an ONNX file keeps its open extents: write it in a "
        "run of its own"};
  if (!o.reports.empty()) return Error{"--report is of one size: give that with --shape, in a run of its own"};
  if (!o.target.empty() && o.target != "cpu") return Error{"--specialize makes code for --target cpu alone"};
  if (!o.wants_code() && !o.dry_run)
    return Error{"--specialize is of the code that --emit writes: give --emit DIR, too"};
  return Unit{};
}

Result<ImportedModel> import_at(const OptimizeOptions& o, const std::vector<std::string>& size) {
  std::vector<std::string> shapes = o.shapes;
  shapes.insert(shapes.end(), size.begin(), size.end());
  ImportOptions import{.lower = true};
  GOPT_ASSIGN_OR_RETURN(import.shapes, parse_shapes(shapes));
  return import_onnx(o.model, import);
}

// Names of --specialize that the model does not have.
Status check_names(const Graph& open, const std::vector<std::string>& size) {
  std::set<std::string> known, extents;
  for (const AtomId symbol : input_symbols(open)) extents.insert(atom(symbol).name);
  for (const Value& input : open.inputs()) known.insert(input.node->name);
  GOPT_ASSIGN_OR_RETURN(const auto asked, parse_shapes(size));
  for (const auto& [name, numbers] : asked)
    if (!known.contains(name) && !extents.contains(name))
      return Error{"--specialize " + name +
                   ": the model has no open extent or input of that name; its open extents are " +
                   (extents.empty() ? "none" : fmt::format("{}", fmt::join(extents, ", ")))};
  return Unit{};
}

Status check_fixes_all(const OptimizeOptions& o, const std::vector<std::string>& size) {
  GOPT_ASSIGN_OR_RETURN(const ImportedModel model, import_at(o, size));
  for (const Value& input : model.graph.inputs())
    if (!input.type().has_static_shape())
      return Error{"input " + input.node->name + " is " + to_string(input.type()) + " at " + joined_size(size) +
                   ": give what is open with --specialize, too, or with --shape"};
  return Unit{};
}

// Of what is one number each.
Extents extents_of(const std::vector<std::string>& size) {
  Extents extents;
  if (const auto parsed = parse_shapes(size); parsed.ok())
    for (const auto& [name, numbers] : *parsed)
      if (numbers.size() == 1) extents[name] = numbers[0];
  return extents;
}

// The model with its extents open, beside its sizes; where that cannot be, they are what there is.
void optimize_general(const OptimizeOptions& o, const Extents& usual, const Observer& observer,
                      OptimizedSizes& optimized) {
  OptimizeOptions own = o;
  own.emit.clear();
  own.specialize.clear();
  own.takes_plan = true;
  own.may_split = false;
  own.prefix = OptimizeOptions().prefix;
  own.usual = usual;
  auto model = optimize_model(own, observer);
  if (!model)
    optimized.why_not_general = model.error().message;
  else if (const auto code = model->outcome.plan ? emit(*model->outcome.plan) : Error{"there is no plan"}; !code.ok())
    optimized.why_not_general = code.error().message;
  else
    optimized.general = *std::move(model);
}

}  // namespace

Result<OptimizedSizes> optimize_sizes(const OptimizeOptions& o, const Observer& observer) {
  GOPT_RETURN_IF_ERROR(check_specialized(o));
  GOPT_ASSIGN_OR_RETURN(const auto sizes, parse_sizes(o.specialize));
  GOPT_ASSIGN_OR_RETURN(const ImportedModel open, import_at(o, {}));
  GOPT_RETURN_IF_ERROR(check_keeps_inputs(open, o));
  GOPT_RETURN_IF_ERROR(check_names(open.graph, sizes[0]));
  GOPT_RETURN_IF_ERROR(check_fixes_all(o, sizes[0]));
  OptimizedSizes optimized;
  std::vector<Plan> plans;
  Extents usual;
  for (const std::vector<std::string>& size : sizes) {
    OptimizeOptions own = o;
    own.emit.clear();
    own.specialize.clear();
    own.takes_plan = true;
    own.may_split = false;
    own.prefix = OptimizeOptions().prefix;
    own.shapes.insert(own.shapes.end(), size.begin(), size.end());
    own.maxima.clear();
    for (const auto& [name, extent] : extents_of(size)) {
      int64_t& largest = usual[name];
      largest = std::max(largest, extent);
    }
    GOPT_ASSIGN_OR_RETURN(OptimizedModel model, optimize_model(own, observer).with_context(joined_size(size)));
    if (model.outcome.plan) plans.push_back(*model.outcome.plan);
    optimized.sizes.push_back({joined_size(size), std::move(model)});
  }
  optimize_general(o, usual, observer, optimized);
  if (o.dry_run) return optimized;
  const auto read_at = [&](const Extents& fixed) -> Result<Graph> {
    std::vector<std::string> size;
    for (const auto& [name, extent] : fixed) size.push_back(name + "=" + std::to_string(extent));
    GOPT_ASSIGN_OR_RETURN(ImportedModel model, import_at(o, size));
    return std::move(model.graph);
  };
  GOPT_ASSIGN_OR_RETURN(optimized.plans, join_sizes(open.graph, plans, read_at));
  if (optimized.general) add_general(*optimized.plans, *optimized.general->outcome.plan);
  const DriverOptions& options = optimized.sizes[0].model.options;
  if (o.measure && options.check.engine != CheckEngine::Off)
    GOPT_RETURN_IF_ERROR(check_sizes(*optimized.plans, options));
  if (o.emit.empty()) return optimized;
  GOPT_ASSIGN_OR_RETURN(const EmittedCode code, emit(*optimized.plans, o.prefix));
  GOPT_RETURN_IF_ERROR(write_emitted(code, o.emit, o.force));
  optimized.emitted = o.emit;
  return optimized;
}

Status write_model(const OptimizedModel& optimized, const std::string& path, bool force) {
  GOPT_RETURN_IF_ERROR(check_writable(path, force));
  GOPT_RETURN_IF_ERROR(check_keeps(read_files(optimized.model.files), {path, path + ".data"}));
  return export_onnx(optimized.outcome.onnx_graph(), path, export_options(optimized.model, force));
}

void add_optimize_flags(CLI::App& app, OptimizeOptions& o) {
  o.may_check_files = true;
  add_search_flags(app, o, {"cpu", "cuda", "onnx"},
                   "onnx, a runtime that runs the file, where -o is given without --emit, else cpu");
  app.add_option("-o,--output", o.output, "write the optimized model to FILE.onnx");
  app.add_option("--emit", o.emit, "write code to the folder DIR");
  app.add_option("--prefix", o.prefix, "of the names in the emitted code, so that several models fit into one program")
      ->capture_default_str();
  app.add_option("--specialize", o.specialize, kSpecializeHelp)->allow_extra_args(false);
  app.add_option(
         "--maximum", o.maxima,
         "SYMBOL=32: with --emit, the greatest that an open extent may be set to; where each has one, all memory "
         "is there from the start")
      ->allow_extra_args(false);
  app.add_option("--report", o.reports, "write what was done to FILE.html, a page, or FILE.json; may be given twice")
      ->allow_extra_args(false);
  app.add_option("--mutate", o.mutate,
                 "time to look for rules that the model's own operators ask for: 60s, 2m; each is proved, and offered "
                 "to the search with the others")
      ->capture_default_str()
      ->excludes("--enable");
  app.add_option("--mutate-rules", o.mutate_rules, "write the rules that --mutate found to FILE.rules");
  app.add_option("--runs", o.runs, "timed runs of original and optimized code each")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_flag("!--no-measure", o.measure,
               "run no emitted code: it is neither timed against the original's nor checked");
  add_runtime_flags(app, o.runtime);
  app.add_flag("--freeze-initializers", o.freeze_initializers,
               "inputs with a default value become constants; for code they always do");
  app.add_flag("--dry-run", o.dry_run, "write nothing");
  app.add_flag("--force", o.force, "overwrite existing files");
}

}  // namespace gopt::cli
