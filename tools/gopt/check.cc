#include "check.h"

#include "check_inputs.h"
#include "draw_inputs.h"
#include "gopt/interpreter.h"
#include "model.h"

namespace gopt::cli {
namespace {

// About the interpreter's second or two for all draws; beyond that, compiling both graphs is quicker.
constexpr double kInterpretBelow = 1e9;
constexpr double kInterpretOften = 1e8;  // below, for each kind of inputs

// The graph as an engine runs it, made once for all draws.
class Runner {
 public:
  static Result<Runner> make(const Graph& graph, const std::string& engine, int threads) {
    Runner runner;
    runner.graph_ = &graph;
    if (engine != "interpreter") {
      GOPT_ASSIGN_OR_RETURN(runner.model_,
                            load_graph(graph, "the model", {.engine = "cpu", .threads = threads, .shapes = {}}));
    }
    return runner;
  }
  Result<std::vector<Tensor>> run(const std::map<std::string, Tensor>& inputs) {
    return model_ ? model_->run(inputs) : interpret(*graph_, inputs);
  }

 private:
  const Graph* graph_ = nullptr;
  std::unique_ptr<Model> model_;
};

// Numbers far from ordinary ones lose digits in both models. What a rewrite must not do to them is to overflow, or to
// leave nothing of a result; where the original does that itself, nothing is asked.
Tolerance tolerance_for(InputKind kind, Tolerance tolerance) {
  constexpr double kLooser = 100;
  if (kind == InputKind::Ordinary) return tolerance;
  return {tolerance.relative * kLooser, tolerance.absolute, true};
}

Status run_check(const Graph& original, const Graph& optimized, const CheckOptions& o, CheckReport& report) {
  GOPT_ASSIGN_OR_RETURN(const auto ordinary, has_symbolic_inputs(original) ? draw_inputs_of_any_extent(original, o.seed)
                                                                           : draw_inputs(original, o.seed));
  GOPT_ASSIGN_OR_RETURN(Runner reference, Runner::make(original, report.engine, o.threads));
  GOPT_ASSIGN_OR_RETURN(Runner other, Runner::make(optimized, report.engine, o.threads));
  const std::vector<double> constants = removed_constants(original, optimized);
  for (InputKind kind : {InputKind::Ordinary, InputKind::Large, InputKind::Tiny, InputKind::Shifted, InputKind::Masked,
                         InputKind::NearConstants}) {
    if (kind == InputKind::NearConstants && constants.empty()) continue;
    // The interpreter alone takes open extents, and is slow.
    if (kind != InputKind::Ordinary && has_symbolic_inputs(original) && o.operations > kInterpretOften) break;
    const auto inputs = kind == InputKind::Ordinary ? ordinary : inputs_of_kind(ordinary, kind, constants, o.seed + 1);
    GOPT_ASSIGN_OR_RETURN(const auto a, reference.run(inputs));
    GOPT_ASSIGN_OR_RETURN(const auto b, other.run(inputs));
    std::vector<Difference> differences;
    bool passed = true;
    for (size_t k = 0; k < a.size(); k++) {
      differences.push_back(difference(original.outputs()[k].name, a[k], b[k], tolerance_for(kind, o.tolerance)));
      passed &= differences.back().passed;
    }
    report.draws.emplace_back(to_string(kind));
    if (kind == InputKind::Ordinary || !passed) report.differences = std::move(differences);
    report.checked = true;
    report.passed = passed;
    if (!passed) break;
  }
  return Unit{};
}

}  // namespace

CheckReport check_equal(const Graph& original, const Graph& optimized, const CheckOptions& o) {
  CheckReport report;
  if (o.engine == "off") {
    report.why_not = "switched off";
    return report;
  }
  report.engine = o.engine != "auto" ? o.engine : o.operations < kInterpretBelow ? "interpreter" : "cpu";
  // Code is for fixed extents; the interpreter takes open ones from its inputs.
  if (has_symbolic_inputs(original)) {
    report.engine = "interpreter";
    if (o.engine != "interpreter" && o.operations >= kInterpretBelow) {
      report.why_not =
          "open extents take the interpreter, which is slow here; say them with --shape, or --check interpreter";
      return report;
    }
  }
  const Status status = run_check(original, optimized, o, report);
  if (!status.ok()) {
    report.checked = report.passed = false;
    report.why_not = status.error().message;
  }
  return report;
}

}  // namespace gopt::cli
