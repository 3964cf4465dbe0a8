#include "check.h"

#include "check_inputs.h"
#include "draw_inputs.h"
#include "gopt/interpreter.h"

namespace gopt::driver {
namespace {

// About the interpreter's second or two for all kinds of inputs; beyond that, compiling both graphs is quicker.
constexpr double kInterpretOften = 1e8;
constexpr double kInterpretBelow = 1e9;  // where there is no code: some seconds
constexpr const char *kInterpreter = "interpreter", *kCpu = "cpu";

// What runs a graph: its code, made once for all draws, or the interpreter.
struct Runner {
  const Graph& graph;
  RunnableModel* code = nullptr;

  Result<std::vector<Tensor>> run(const std::map<std::string, Tensor>& inputs) const {
    return code ? code->run(inputs) : interpret(graph, inputs);
  }
};
Result<Runner> runner_for(PlannedGraph& planned, bool interprets) {
  Runner runner{planned.graph()};
  if (!interprets) {
    GOPT_ASSIGN_OR_RETURN(runner.code, planned.code());
  }
  return runner;
}

// Numbers far from ordinary ones lose digits in both models. What a rewrite must not do to them is to overflow, or to
// leave nothing of a result; where the original does that itself, nothing is asked.
Tolerance tolerance_for(InputKind kind, Tolerance tolerance) {
  constexpr double kLooser = 100;
  if (kind == InputKind::Ordinary) return tolerance;
  return {tolerance.relative * kLooser, tolerance.absolute, true};
}

Status run_check(PlannedGraph& first, PlannedGraph& second, const CheckOptions& o, double operations, uint64_t seed,
                 CheckReport& report) {
  const Graph &original = first.graph(), &optimized = second.graph();
  GOPT_ASSIGN_OR_RETURN(const auto ordinary, has_symbolic_inputs(original) ? draw_inputs_of_any_extent(original, seed)
                                                                           : draw_inputs(original, seed));
  const bool interprets = report.engine == kInterpreter;
  GOPT_ASSIGN_OR_RETURN(const Runner reference, runner_for(first, interprets));
  GOPT_ASSIGN_OR_RETURN(const Runner other, runner_for(second, interprets));
  const std::vector<double> constants = removed_constants(original, optimized);
  for (InputKind kind : {InputKind::Ordinary, InputKind::Large, InputKind::Tiny, InputKind::Shifted, InputKind::Masked,
                         InputKind::NearConstants}) {
    if (kind == InputKind::NearConstants && constants.empty()) continue;
    // The interpreter is slow.
    if (kind != InputKind::Ordinary && interprets && operations > kInterpretOften) break;
    const auto inputs = kind == InputKind::Ordinary ? ordinary : inputs_of_kind(ordinary, kind, constants, seed + 1);
    GOPT_ASSIGN_OR_RETURN(const auto a, reference.run(inputs));
    GOPT_ASSIGN_OR_RETURN(const auto b, other.run(inputs));
    std::vector<Difference> differences;
    bool passed = true;
    for (size_t k = 0; k < a.size(); k++) {
      differences.push_back(difference(original.outputs()[k].name, a[k], b[k], tolerance_for(kind, o.tolerance)));
      passed &= differences.back().passed;
    }
    report.draws.emplace_back(to_string(kind));
    if (kind == InputKind::Ordinary || !passed) report.differences = differences;
    report.differences_of_draw.push_back(std::move(differences));
    report.checked = true;
    report.passed = passed;
    if (!passed) break;
  }
  return Unit{};
}

}  // namespace

CheckReport check_equal(PlannedGraph& original, PlannedGraph& optimized, const CheckOptions& o, double operations,
                        uint64_t seed) {
  CheckReport report;
  if (o.engine == CheckEngine::Off) {
    report.why_not = "switched off";
    return report;
  }
  const bool is_small = operations < kInterpretBelow, is_asked = o.engine == CheckEngine::Interpreter;
  const bool is_free = o.engine == CheckEngine::Auto;
  report.engine = is_asked || (is_free && operations < kInterpretOften) ? kInterpreter : kCpu;
  // Code is for fixed extents; the interpreter takes open ones from its inputs.
  if (has_symbolic_inputs(original.graph())) {
    report.engine = kInterpreter;
    if (!is_asked && !is_small) {
      report.why_not =
          "open extents take the interpreter, which is slow here; say them with --shape, or --check interpreter";
      return report;
    }
  }
  if (is_free && is_small && report.engine == kCpu && (!original.code().ok() || !optimized.code().ok()))
    report.engine = kInterpreter;
  const Status status = run_check(original, optimized, o, operations, seed, report);
  if (!status.ok()) {
    report.checked = report.passed = false;
    report.why_not = status.error().message;
  }
  return report;
}

}  // namespace gopt::driver
