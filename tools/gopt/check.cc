#include "check.h"

#include "draw_inputs.h"
#include "gopt/interpreter.h"
#include "model.h"

namespace gopt::cli {
namespace {

// About the interpreter's second or two; beyond that, compiling both graphs is quicker.
constexpr double kInterpretBelow = 3e9;

Result<std::vector<Tensor>> run_on(const Graph& graph, const std::string& engine, int threads,
                                   const std::map<std::string, Tensor>& inputs) {
  if (engine == "interpreter") return interpret(graph, inputs);
  GOPT_ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                        load_graph(graph, "the model", {.engine = "cpu", .threads = threads, .shapes = {}}));
  return model->run(inputs);
}

Status run_check(const Graph& original, const Graph& optimized, const CheckOptions& o, CheckReport& report) {
  GOPT_ASSIGN_OR_RETURN(auto inputs, draw_inputs(original, o.seed));
  GOPT_ASSIGN_OR_RETURN(auto a, run_on(original, report.engine, o.threads, inputs));
  GOPT_ASSIGN_OR_RETURN(auto b, run_on(optimized, report.engine, o.threads, inputs));
  report.checked = report.passed = true;
  for (size_t k = 0; k < a.size(); k++) {
    report.differences.push_back(difference(original.outputs()[k].name, a[k], b[k], o.tolerance));
    report.passed &= report.differences.back().passed;
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
  const Status status = run_check(original, optimized, o, report);
  if (!status.ok()) report.why_not = status.error().message;
  return report;
}

}  // namespace gopt::cli
