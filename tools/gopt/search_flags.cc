#include "search_flags.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <thread>

#include "check_file.h"
#include "gopt/runtime/gopt_amx.h"
#include "gopt/temporary.h"
#include "model.h"
#include "program.h"
#include "rule_files.h"

namespace gopt::cli {
namespace {

std::atomic<bool> was_interrupted{false};
// A second one ends the program, as it does elsewhere: nothing has its name before it is whole.
void on_interrupt(int) {
  was_interrupted = true;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

Status check_numbers(const SearchFlags& f) {
  const auto is_tolerance = [](double t) { return std::isfinite(t) && t >= 0; };
  if (!is_tolerance(f.tolerance.relative) || !is_tolerance(f.tolerance.absolute))
    return Error{"--rtol and --atol are numbers, not negative"};
  if (!std::isfinite(f.alpha) || f.alpha < 1) return Error{"--alpha is a number, 1 or more"};
  return Unit{};
}

// Of this processor: libraries have no fast code for blocks of more channels than a register holds.
int vector_lanes() {
#if defined(__x86_64__)
  const bool is_narrow = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("avx512f") == 0;
#else
  const bool is_narrow = false;
#endif
  return is_narrow ? 8 : Target().vector_lanes;
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

std::string name_of(TargetKind kind) {
  switch (kind) {
    case TargetKind::Cpu: return "cpu";
    case TargetKind::Cuda: return "cuda";
    case TargetKind::Onnx: return "onnx";
  }
  return "";
}

Status check_precision(const Target& target) {
  std::vector<std::string> names;
  for (const Precision precision : precisions_of(target.kind)) {
    if (precision == target.precision) return Unit{};
    names.push_back(to_string(precision));
  }
  return Error{fmt::format("--precision {}: --target {} has {}", to_string(target.precision), name_of(target.kind),
                           fmt::join(names, ", "))};
}

// Parts of plans have a kind before a colon, which no rule or pass has.
bool is_part_of_plans(const std::string& name) {
  return std::ranges::any_of(std::array{"layout:", "kernel:", "fusion:", "launch:"},
                             [&](const char* kind) { return name.starts_with(kind); });
}
Result<std::set<std::string>> switched_off_parts(const std::vector<std::string>& names, TargetKind target) {
  const std::vector<std::string> parts = plan_parts(target);
  std::set<std::string> off;
  for (const std::string& name : names) {
    if (!is_part_of_plans(name)) continue;
    if (std::ranges::find(parts, name) == parts.end())
      return Error{"--disable " + name + ": plans for --target " + name_of(target) + " have no such part; " +
                   (parts.empty() ? "they have none" : fmt::format("they have {}", fmt::join(parts, ", ")))};
    off.insert(name);
  }
  return off;
}

Result<SearchOptions> search_options(const SearchFlags& f) {
  SearchOptions s;
  for (const SearchKind kind :
       {SearchKind::Backtracking, SearchKind::Greedy, SearchKind::Beam, SearchKind::Saturation, SearchKind::None})
    if (f.search == to_string(kind)) s.search = kind;
  s.beam_width = f.beam_width;
  s.alpha = f.alpha;
  s.max_steps = f.steps;
  s.workers = f.workers > 0 ? f.workers : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  GOPT_ASSIGN_OR_RETURN(s.budget_seconds, parse_time("--budget", f.budget));
  const std::vector<std::string>& passes = pass_names();
  const auto is_pass = [&](const std::string& name) { return std::ranges::find(passes, name) != passes.end(); };
  for (const std::string& name : f.disable)
    if (!is_part_of_plans(name)) (is_pass(name) ? s.disabled_passes : s.disabled_rules).push_back(name);
  for (const std::string& name : f.enable)
    if (!is_pass(name)) s.enabled_rules.push_back(name);
  GOPT_ASSIGN_OR_RETURN(s.allowed_marks, parse_allowed(f.allow));
  s.stop = &was_interrupted;
  return s;
}

// The --cache file, or the default one, whose folder is made.
Result<std::string> cache_path(const std::string& given) {
  if (!given.empty()) return given;
  const auto folder = cache_folder();
  if (!folder.ok()) return Error{folder.error().message + "; or give --cache FILE"};
  return (*folder / "kernel_times").string();
}

CheckEngine check_engine(const std::string& name) {
  return name == "off"           ? CheckEngine::Off
         : name == "onnxruntime" ? CheckEngine::Files
         : name == "cpu"         ? CheckEngine::Cpu
         : name == "interpreter" ? CheckEngine::Interpreter
                                 : CheckEngine::Auto;
}

TargetKind target_kind(const std::string& name, TargetKind otherwise) {
  return name.empty()     ? otherwise
         : name == "onnx" ? TargetKind::Onnx
         : name == "cuda" ? TargetKind::Cuda
                          : TargetKind::Cpu;
}

}  // namespace

Result<double> parse_time(const std::string& flag, const std::string& text) {
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
    return Error{flag + " " + text + ": expected a time such as 60s, 500ms or 2m"};
  return value * scale;
}

void add_search_flags(CLI::App& app, SearchFlags& f, const std::vector<std::string>& targets,
                      const std::string& default_target) {
  app.add_option("model", f.model, "an ONNX file")->required();
  app.add_option("--target", f.target,
                 fmt::format("what the costs are for: {} (default: {})", fmt::join(targets, ", "), default_target))
      ->check(CLI::IsMember(targets));
  app.add_option("--rules", f.rules, "rules files; those that gopt ships where none is given");
  app.add_option("--search", f.search, "backtracking, greedy, beam, saturation or none")
      ->check(CLI::IsMember({"backtracking", "greedy", "beam", "saturation", "none"}))
      ->capture_default_str();
  app.add_option("--budget", f.budget, "time for the search: 60s, 500ms, 2m")->capture_default_str();
  app.add_option("--steps", f.steps, "graphs expanded at most")
      ->check(CLI::Range(0, 1000000000))
      ->capture_default_str();
  app.add_option("--alpha", f.alpha, "keep graphs below alpha x the best cost")
      ->check(CLI::Range(1.0, 100.0))
      ->capture_default_str();
  app.add_option("--beam-width", f.beam_width, "with --search beam: graphs of a generation that are rewritten")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--enable", f.enable, "only these rules, whatever their marks");
  app.add_option("--disable", f.disable,
                 "without these rules, passes, or parts of plans (layout:NAME, kernel:NAME, fusion:NAME, launch:NAME)");
  app.add_option("--allow", f.allow, "also rules with these marks: " + unsafe_marks());
  app.add_flag("--safe", f.safe,
               "only rules without a mark: none that assumes finite numbers, takes sums in another order or puts other "
               "functions or constants in place of the model's")
      ->excludes("--allow")
      ->excludes("--enable");
  app.add_option(
         "--cost", f.cost,
         "analytic; measured: kernels are built and timed here, once each; auto: measured where they can be, or "
         "the cache has times of a GPU")
      ->check(CLI::IsMember({"auto", "analytic", "measured"}))
      ->capture_default_str();
  app.add_option(
         "--cost-model", f.cost_model,
         "what the search compares: plan, with fusion and layouts; sum, of the operators alone, to compare with")
      ->check(CLI::IsMember({"plan", "sum"}))
      ->capture_default_str();
  app.add_option("--cache", f.cache,
                 "file of measured kernel times (default: gopt/kernel_times under the user's cache folder)");
  app.add_option("--gpu", f.gpu, "part of the name of the GPU whose times in the cache --target cuda plans by");
  app.add_option("--precision", f.precision,
                 "of products and convolutions: fp32; bf16, in which tensors are stored, too; with --target cpu "
                 "bf16x3, sums of "
                 "two such numbers; with --target cuda tf32, about three decimal digits, and fp16, like bf16")
      ->check(CLI::IsMember({"fp32", "tf32", "fp16", "bf16", "bf16x3"}))
      ->capture_default_str();
  app.add_option("--threads", f.threads, "threads of the emitted code")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--workers", f.workers,
                 "threads of the search, which finds the same with any number; 0: one a processor")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--shape", f.shapes, kShapeHelp);
  std::vector<std::string> checks{"auto", "interpreter", "cpu", "off"};
  if (f.may_check_files) checks.emplace_back("onnxruntime");
  const CLI::Validator ways = CLI::IsMember(checks);
  const auto is_way = [ways](std::string& text) { return is_check_file(text) ? "" : ways(text); };
  app.add_option("--check", f.check,
                 fmt::format("how the result is checked: {}; or FILE.npz: on these inputs, too, and against the "
                             "outputs that are there",
                             fmt::join(checks, ", ")))
      ->check(CLI::Validator(is_way, ways.get_description()))
      ->capture_default_str();
  add_seed(app, f.seed, "seed of the inputs that it is checked and timed on");
  app.add_option("--rtol", f.tolerance.relative, "of the largest magnitude of an output")->capture_default_str();
  app.add_option("--atol", f.tolerance.absolute, "absolute tolerance")->capture_default_str();
}

Result<DriverOptions> driver_options(const SearchFlags& f, TargetKind default_target) {
  GOPT_RETURN_IF_ERROR(check_numbers(f));
  DriverOptions d;
  d.target = {target_kind(f.target, default_target), f.threads};
  d.target.precision = parse_precision(f.precision).value();
  GOPT_RETURN_IF_ERROR(check_precision(d.target));
  GOPT_ASSIGN_OR_RETURN(d.target.without, switched_off_parts(f.disable, d.target.kind));
  const bool is_onnx = d.target.kind == TargetKind::Onnx;
  GOPT_ASSIGN_OR_RETURN(d.search, search_options(f));
  d.cost_model = f.cost_model == "sum" ? CostModel::Sum : CostModel::Plan;
  if (is_onnx && d.cost_model == CostModel::Sum)
    return Error{"--cost-model sum is of kernels for --target cpu or cuda; --target onnx has none"};
  d.measured_costs = f.cost == "measured" || (f.cost == "auto" && !is_onnx);
  if (d.measured_costs && d.target.kind == TargetKind::Cpu) {
    // What was timed here says whether kernels on tiles are faster.
    d.target.has_tiles = gopt_runtime::has_amx();
    d.target.vector_lanes = vector_lanes();
  }
  if (d.measured_costs && is_onnx)
    return Error{"--cost measured is of kernels for --target cpu or cuda; --target onnx has none"};
  if (!f.gpu.empty() && (d.target.kind != TargetKind::Cuda || !d.measured_costs))
    return Error{"--gpu says whose kernel times a plan for --target cuda is made by; it does not go with --target " +
                 name_of(d.target.kind) + " --cost " + f.cost};
  if (d.measured_costs) {
    GOPT_ASSIGN_OR_RETURN(d.cache, cache_path(f.cache));
  }
  d.gpu = f.gpu;
  d.check = {check_engine(f.check), f.tolerance};
  d.seed = f.seed;
  return d;
}

Status complete_options(const SearchFlags& flags, const std::vector<RewriteRule>& rules, const Graph& graph,
                        DriverOptions& options) {
  for (const RewriteRule& rule : rules)
    if (flags.safe && rule.marks != RuleMarks()) options.search.disabled_rules.push_back(rule.name);
  return is_check_file(flags.check) ? read_check_file(flags.check, graph, options.check) : Unit{};
}

std::vector<ReadFile> files_read(const SearchFlags& flags, const ImportedModel& model) {
  std::vector<ReadFile> read = read_files(model.files);
  for (const std::string& rules : flags.rules) read.push_back({rules, "holds rules that are read"});
  if (is_check_file(flags.check)) read.push_back({flags.check, "holds the inputs of --check, which are read"});
  return read;
}

Status check_cache(const SearchFlags& flags, const ImportedModel& model) {
  return check_keeps(files_read(flags, model), {flags.cache}).with_context("--cache");
}

Result<ModelAndRules> load_model_and_rules(const SearchFlags& flags) {
  ImportOptions import;
  import.lower = flags.target != "onnx";
  GOPT_ASSIGN_OR_RETURN(import.shapes, parse_shapes(flags.shapes));
  GOPT_ASSIGN_OR_RETURN(std::vector<RewriteRule> rules, load_rule_files(flags.rules));
  GOPT_ASSIGN_OR_RETURN(ImportedModel model, import_onnx(flags.model, import));
  GOPT_RETURN_IF_ERROR(check_cache(flags, model));
  for (const std::string& warning : model.warnings) print_warning(warning);
  return ModelAndRules{std::move(model), std::move(rules)};
}

const std::atomic<bool>& interrupted() { return was_interrupted; }
InterruptStops::InterruptStops() {
  for (const int ending : {SIGINT, SIGTERM}) std::signal(ending, on_interrupt);
}
InterruptStops::~InterruptStops() {
  for (const int ending : {SIGINT, SIGTERM}) std::signal(ending, SIG_DFL);
}

std::function<void(const std::string&)> progress_line() {
  if (!isatty(2)) return {};
  return [](const std::string& line) { fmt::print(stderr, "\r\033[K{}", line); };
}
void clear_progress_line() {
  if (isatty(2)) fmt::print(stderr, "\r\033[K");
}

}  // namespace gopt::cli
