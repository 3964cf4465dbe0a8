#include "check.h"

#include <algorithm>

#include "amplification.h"
#include "answered_run.h"
#include "check_files.h"
#include "check_inputs.h"
#include "check_integers.h"
#include "checked_part.h"
#include "draw_inputs.h"
#include "gopt/clock.h"
#include "gopt/interpreter.h"
#include "graph_runner.h"
#include "half_range.h"
#include "machine_speed.h"
#include "open_check.h"
#include "quantization_step.h"

namespace gopt::driver {
namespace {

constexpr double kInterpretBelow = 1e9;  // where there is no code: some seconds

Result<std::map<std::string, Tensor>> draw_ordinary(const Graph& graph, uint64_t seed) {
  return has_symbolic_inputs(graph) ? draw_inputs_of_any_extent(graph, seed) : draw_inputs(graph, seed);
}

bool is_always_tried(InputKind kind) { return kind == InputKind::Ordinary || kind == InputKind::Given; }

// How many kinds of inputs are run at once: what depends on weights alone is computed once for them, while the values
// of each lie in memory; many, where these are small beside the weights.
size_t at_once(const Graph& graph) {
  constexpr double kShare = 1.0 / 8;
  const double weights = weight_bytes(graph);
  double largest = 1;
  for (uint32_t at = 0; at < graph.nodes().size(); at++) {
    const NodePtr& node = graph.nodes()[at];
    if (graph.depends_on_weights_only(NodeId{at})) continue;
    for (const TensorType& type : node->outputs)
      if (type.has_static_shape())
        largest = std::max(largest, static_cast<double>(element_count(type.static_shape())) * 4);
  }
  return static_cast<size_t>(std::max(1.0, kShare * weights / largest));
}

// What the interpreter gives where roundings differ.
Result<std::vector<Tensor>> run_nudged(const Graph& graph, const std::map<std::string, Tensor>& inputs,
                                       Products products) {
  GOPT_ASSIGN_OR_RETURN(const Graph other, nudged(graph));
  return interpret(other, inputs, products);
}

// Both graphs on one kind of inputs after another, as long as there is time.
class DrawnRuns {
 public:
  DrawnRuns(const Graph& original, const GraphRunner& reference, const GraphRunner& other, const CheckOptions& options,
            const InputDraws& draws, CheckReport& report)
      : original_(original),
        reference_(reference),
        other_(other),
        options_(options),
        draws_(draws),
        report_(report),
        start_(Clock::now()) {}

  Status run() {
    std::vector<InputKind> others;
    size_t tried = 0;
    for (const InputKind kind : kInputKinds) {
      if (!draws_.has(kind)) continue;
      if (!is_always_tried(kind)) {
        others.push_back(kind);
        continue;
      }
      GOPT_RETURN_IF_ERROR(compare({&kind, 1}));
      if (!report_.passed) return Unit{};
      tried++;
    }
    const double seconds_each = seconds_since(start_) / static_cast<double>(tried);
    const auto in_time = static_cast<size_t>(std::max(0.0, options_.seconds - seconds_since(start_)) / seconds_each);
    for (size_t k = in_time; k < others.size(); k++) report_.not_drawn.emplace_back(to_string(others[k]));
    others.resize(std::min(others.size(), in_time));
    const size_t group = at_once(original_);
    for (size_t first = 0; first < others.size() && report_.passed; first += group)
      GOPT_RETURN_IF_ERROR(compare(std::span(others).subspan(first, std::min(group, others.size() - first))));
    return Unit{};
  }

 private:
  Status compare(std::span<const InputKind> kinds) {
    std::vector<std::map<std::string, Tensor>> inputs;
    for (const InputKind kind : kinds) inputs.push_back(draws_.of(kind));
    GOPT_ASSIGN_OR_RETURN(const auto a, reference_.run_all(inputs));
    GOPT_ASSIGN_OR_RETURN(const auto b, other_.run_all(inputs));
    for (size_t k = 0; k < kinds.size(); k++) {
      GOPT_ASSIGN_OR_RETURN(const auto expected, expected_outputs(original_, kinds[k], a[k], options_));
      CheckReport before = report_;
      add_draw(report_, original_, kinds[k], expected, b[k], options_.tolerance);
      if (!report_.passed && !reference_.code && is_quantized(original_)) {
        GOPT_ASSIGN_OR_RETURN(const auto nudged, run_nudged(original_, inputs[k], reference_.products));
        report_ = std::move(before);
        add_draw(report_, original_, kinds[k], expected, b[k], options_.tolerance, &nudged);
      }
      if (!report_.passed) break;
    }
    return Unit{};
  }

  const Graph& original_;
  const GraphRunner &reference_, &other_;
  const CheckOptions& options_;
  const InputDraws& draws_;
  CheckReport& report_;
  const Clock::time_point start_;
};

Status run_check(PlannedGraph& first, PlannedGraph& second, const CheckOptions& o, double operations, uint64_t seed,
                 CheckReport& report) {
  const Graph &original = first.graph(), &optimized = second.graph();
  GOPT_ASSIGN_OR_RETURN(const auto ordinary, draw_ordinary(original, seed));
  GOPT_ASSIGN_OR_RETURN(const GraphRunner reference, runner_for(first, report.engine, products_for(operations)));
  GOPT_ASSIGN_OR_RETURN(const GraphRunner other, runner_for(second, report.engine, products_for(operations)));
  const InputDraws draws(ordinary, o, removed_constants(original, optimized), seed);
  GOPT_RETURN_IF_ERROR(DrawnRuns(original, reference, other, o, draws, report).run());
  if (!report.not_drawn.empty()) return Unit{};
  return check_integers(
      report, reference, [&](const auto& inputs) { return other.run(inputs); }, ordinary, o, o.tolerance, seed);
}

// Graphs that can be run as they are, but for symbols.
CheckReport check_whole(PlannedGraph& original, PlannedGraph& optimized, const CheckOptions& o, double operations,
                        uint64_t seed) {
  CheckReport report;
  const bool is_small = operations < kInterpretBelow, is_asked = o.engine == CheckEngine::Interpreter;
  const bool is_free = o.engine == CheckEngine::Auto;
  const bool is_quick =
      operations < kInterpretOften || (is_interpreted_soon(original.graph()) && is_interpreted_soon(optimized.graph()));
  report.engine = is_asked || (is_free && is_quick) ? kInterpreter : kCpu;
  // Code is for fixed extents; the interpreter takes open ones from its inputs.
  if (has_symbolic_inputs(original.graph())) {
    report.engine = kInterpreter;
    if (!is_asked && !is_small) {
      report.why_not =
          "open extents take the interpreter, which is slow here; say them with --shape, or --check interpreter";
      return report;
    }
  }
  if (is_free && report.engine == kCpu && (!original.code().ok() || !optimized.code().ok())) {
    if (is_small)
      report.engine = kInterpreter;
    else if (original.is_for_gpu() && original.code_for_target().ok() && optimized.code_for_target().ok())
      report.engine = kCuda;
  }
  const Status status = run_check(original, optimized, o, operations, seed, report);
  if (!status.ok()) {
    report.checked = report.passed = false;
    report.why_not = status.error().message;
  }
  return report;
}

// Why the optimized graph has no meaning at extents at which the original runs; nothing where there are none such.
std::optional<std::string> why_lost(const std::vector<LostExtents>& lost, uint64_t seed) {
  for (const LostExtents& one : lost) {
    const auto inputs = draw_inputs(one.original, seed);
    if (inputs.ok() && interpret(one.original, *inputs).ok()) return one.why;
  }
  return std::nullopt;
}

CheckReport report_of_lost(const Graph& original, std::string why) {
  CheckReport report{.checked = true, .engine = kInterpreter};
  report.draws.emplace_back(driver::to_string(InputKind::Ordinary));
  Difference difference{.output = original.outputs().front().name, .comparable = false};
  difference.note = std::move(why);
  report.differences.push_back(std::move(difference));
  return report;
}

CheckReport report_of_part(const CheckedPart& part, const CheckOptions& o, uint64_t seed) {
  const CostSource costs;
  const Target target{TargetKind::Cpu, 1};
  PlannedGraph first(part.original, target, costs), second(part.optimized, target, costs);
  CheckReport report = check_whole(first, second, o, operations_of(part.original, target), seed);
  report.nodes_checked = part.nodes_checked;
  report.left_out = part.left_out;
  report.extents = part.extents;
  return report;
}

// What can be run of graphs that hold more than that. Extents that types follow from may still be none that the
// original runs at (a place that is read lies beyond them): then others are tried.
CheckReport check_part(const Graph& original, const Graph& optimized, const CheckOptions& o, uint64_t seed) {
  constexpr int kTries = 8;
  std::vector<LostExtents> lost;
  auto part = part_to_check(original, optimized, o.inputs, 0, &lost);
  if (auto why = why_lost(lost, seed)) return report_of_lost(original, *std::move(why));
  if (!part.ok()) return {.why_not = part.error().message};
  const CheckReport report = report_of_part(*part, o, seed);
  if (report.checked || part->extents.empty()) return report;
  for (int attempt = 1; attempt < kTries; attempt++) {
    const size_t next = part->choice + 1;
    part = part_to_check(original, optimized, o.inputs, next);
    if (!part.ok() || part->choice < next) break;
    if (CheckReport other = report_of_part(*part, o, seed); other.checked) return other;
  }
  return report;
}

}  // namespace

CheckReport check_equal(PlannedGraph& original, PlannedGraph& optimized, const CheckOptions& o, double operations,
                        uint64_t seed) {
  if (o.engine == CheckEngine::Off) return {.why_not = "switched off"};
  const bool is_by_files = o.engine == CheckEngine::Files;
  const int nodes = count_operators(original.graph());
  CheckReport report;
  if (is_by_files) {
    report = check_files(original.graph(), optimized.graph(), o, seed);
  } else if (is_whole(original.graph())) {
    report = check_whole(original, optimized, o, operations, seed);
  } else {
    report = check_part(original.graph(), optimized.graph(), o, seed);
  }
  report.nodes = nodes;
  if (is_by_files || report.left_out.empty()) report.nodes_checked = report.checked ? nodes : 0;
  return report;
}

namespace {
// What roundings of a precision add up to; a wrong kernel is further off.
double digits_of(Precision precision) {
  switch (precision) {
    case Precision::Fp32: return 0;
    case Precision::Tf32: return 2e-2;
    case Precision::Fp16: return 3e-2;
    case Precision::Bf16: return 2e-1;
    case Precision::Bf16x3: return 1e-3;
  }
  throw InternalError("a precision without digits");
}
}  // namespace

Tolerance tolerance_of_code(const DriverOptions& options) {
  Tolerance tolerance = options.check.tolerance;
  tolerance.relative = std::max(tolerance.relative, digits_of(options.target.precision));
  return tolerance;
}

Result<int> widen_values(PlannedGraph& graph, const DriverOptions& options, double operations) {
  if (options.target.precision != Precision::Fp16) return 0;
  GOPT_ASSIGN_OR_RETURN(const auto inputs, draw_inputs(graph.graph(), options.seed + 1));
  GOPT_ASSIGN_OR_RETURN(auto values, values_beyond_half(graph, inputs, operations < kInterpretOften));
  const int count = static_cast<int>(values.size());
  if (count > 0) graph.keep_in_fp32(std::move(values));
  return count;
}

namespace {

constexpr const char* kTooLong = "its definitions would run for too long";

// Whether the interpreter, or code for the CPU in fp32, says what the code is to compute; nothing: neither does.
std::optional<const char*> reference_for(const Graph& graph, const DriverOptions& options, double operations) {
  if (operations < kInterpretOften || is_interpreted_soon(graph)) return kInterpreter;
  const bool is_own_reference = options.target.kind == TargetKind::Cpu && options.target.precision == Precision::Fp32;
  return is_own_reference ? std::nullopt : std::optional(kCpu);
}

// Code that calls functions for nodes without definition, which nobody here has: what those take is compared, and what
// they give is drawn.
std::optional<CheckReport> check_calling_code(PlannedGraph& graph, const DriverOptions& options) {
  const auto part = part_to_check(graph.graph(), graph.graph());
  if (!part.ok()) return CheckReport{.why_not = part.error().message};
  const Target target{TargetKind::Cpu, options.target.threads};
  const double operations = operations_of(part->original, target);
  const auto engine = reference_for(part->original, options, operations);
  if (!engine) return CheckReport{.why_not = kTooLong};
  CheckReport report{.engine = *engine,
                     .nodes = count_operators(graph.graph()),
                     .nodes_checked = part->nodes_checked,
                     .left_out = part->left_out};
  const auto compare = [&]() -> Status {
    GOPT_ASSIGN_OR_RETURN(const auto inputs, draw_inputs(part->original, options.seed + 1));
    const CostSource costs;
    PlannedGraph alone(part->original, target, costs);
    GOPT_ASSIGN_OR_RETURN(const GraphRunner reference, runner_for(alone, report.engine, products_for(operations)));
    GOPT_ASSIGN_OR_RETURN(RunnableModel * code, graph.code_for_target());
    GOPT_ASSIGN_OR_RETURN(const auto a, reference.run(inputs));
    GOPT_ASSIGN_OR_RETURN(const auto b, run_answered(*code, *part, inputs));
    add_draw(report, part->original, InputKind::Ordinary, a, b, tolerance_of_code(options));
    return allow_for_amplification(report, reference, inputs, a, b, tolerance_of_code(options),
                                   options.target.precision, options.seed);
  };
  const Status status = compare();
  if (!status.ok()) report.why_not = status.error().message;
  return report;
}

}  // namespace

std::optional<CheckReport> check_code(PlannedGraph& graph, const DriverOptions& options, double operations) {
  if (options.check.engine == CheckEngine::Off) return std::nullopt;
  if (graph.is_open()) return check_open_code(graph, options);
  if (has_symbolic_inputs(graph.graph())) return std::nullopt;
  if (!is_whole(graph.graph())) return check_calling_code(graph, options);
  const auto engine = reference_for(graph.graph(), options, operations);
  if (!engine) return CheckReport{.why_not = kTooLong};
  const Tolerance tolerance = tolerance_of_code(options);
  CheckReport report{.engine = *engine};
  const auto compare = [&]() -> Status {
    GOPT_ASSIGN_OR_RETURN(const auto inputs, draw_inputs(graph.graph(), options.seed + 1));
    GOPT_ASSIGN_OR_RETURN(const GraphRunner reference, runner_for(graph, report.engine, products_for(operations)));
    GOPT_ASSIGN_OR_RETURN(RunnableModel * code, graph.code_for_target());
    const auto compare_on = [&](InputKind kind, const std::map<std::string, Tensor>& own) -> Status {
      const Tolerance limit = tolerance_for(kind, tolerance);
      GOPT_ASSIGN_OR_RETURN(const auto a, reference.run(own));
      GOPT_ASSIGN_OR_RETURN(const auto b, code->run(own));
      const CheckReport before = report;
      add_draw(report, graph.graph(), kind, a, b, limit);
      if (!report.passed && report.engine == kInterpreter && is_quantized(graph.graph())) {
        GOPT_ASSIGN_OR_RETURN(const auto other, run_nudged(graph.graph(), own, products_for(operations)));
        report = before;
        add_draw(report, graph.graph(), kind, a, b, limit, &other);
      }
      return allow_for_amplification(report, reference, own, a, b, limit, options.target.precision, options.seed);
    };
    GOPT_RETURN_IF_ERROR(compare_on(InputKind::Ordinary, inputs));
    GOPT_RETURN_IF_ERROR(check_integers(
        report, reference, [&](const auto& given) { return code->run(given); }, inputs, options.check, tolerance,
        options.seed + 1));
    const InputDraws draws(inputs, options.check, {}, options.seed + 1);
    if (!report.passed || !draws.has(InputKind::Given)) return Unit{};
    return compare_on(InputKind::Given, draws.of(InputKind::Given));
  };
  const Status status = compare();
  if (!status.ok()) report.why_not = status.error().message;
  return report;
}

Status must_agree(const CheckReport& code_check) {
  for (const Difference& d : code_check.differences)
    if (!d.passed)
      return Error{"output " + d.output + ": the code that was made computes something else than its graph by " +
                   std::string(code_check.engine == kCpu ? "code for the CPU" : "the interpreter") + ", on " +
                   last_inputs(code_check) + " (" +
                   (d.comparable ? "max |a-b| / max |a| = " + std::to_string(d.max_relative)
                                 : d.note + ", the former by that reference") +
                   "); nothing is written. gopt bisect finds the kernel of ordinary inputs; --rtol and --atol say how "
                   "closely it must agree, --check off does not ask"};
  return Unit{};
}

Result<CheckedInputs> inputs_of_failure(const Graph& original, const Graph& optimized, const CheckReport& report,
                                        const CheckOptions& options, uint64_t seed) {
  GOPT_ASSIGN_OR_RETURN(const auto ordinary, draw_ordinary(original, seed));
  InputKind failed = InputKind::Ordinary;
  for (const InputKind kind : kInputKinds)
    if (!report.passed && !report.draws.empty() && report.draws.back() == to_string(kind)) failed = kind;
  const InputDraws draws(ordinary, options, removed_constants(original, optimized), seed, integer_draws(original));
  return CheckedInputs{draws.of(failed, report.round), tolerance_for(failed, options.tolerance)};
}

}  // namespace gopt::driver
