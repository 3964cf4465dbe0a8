#include "check_files.h"

#include "check_inputs.h"
#include "checked_part.h"
#include "draw_inputs.h"
#include "gopt/onnx.h"
#include "gopt/temporary.h"

namespace gopt::driver {
namespace {

constexpr const char* kUnrewritten = ".unrewritten.onnx";

struct Draws {
  std::vector<InputKind> kinds;
  std::vector<std::map<std::string, Tensor>> inputs;
};

Result<Draws> draw_all(const Graph& original, const CheckOptions& o, const std::vector<double>& constants,
                       const Substitution& extents, uint64_t seed) {
  GOPT_ASSIGN_OR_RETURN(const auto ordinary, draw_inputs_at(original, seed, extents));
  const InputDraws all(ordinary, o, constants, seed);
  Draws draws;
  for (const InputKind kind : kInputKinds) {
    if (!all.has(kind)) continue;
    draws.kinds.push_back(kind);
    draws.inputs.push_back(all.of(kind));
  }
  return draws;
}

// What a file gives, compared with what is expected of each draw.
Status compare(const Graph& original, const std::string& path, RuntimeOptimizations optimizations, const Draws& draws,
               const std::vector<std::vector<Tensor>>& expected, const CheckOptions& o, CheckReport& report) {
  GOPT_ASSIGN_OR_RETURN(const auto outputs, o.runner->run(path, draws.inputs, optimizations));
  for (size_t k = 0; k < draws.kinds.size(); k++) {
    const size_t count = original.outputs().size();
    if (expected[k].size() != count || outputs[k].size() != count)
      return Error{"the files have other outputs than the model that was read"};
    GOPT_ASSIGN_OR_RETURN(const auto reference, expected_outputs(original, draws.kinds[k], expected[k], o));
    add_draw(report, original, draws.kinds[k], reference, outputs[k], o.tolerance);
    if (!report.passed) break;
  }
  return Unit{};
}

// What would be written could not be compared, where the file that was read ran: a failure. An error where it is the
// same with what was read, written again as it is: that says nothing of the rewriting (a graph that is taken apart for
// code is no file of anybody's).
Status judge_error(const Status& status, const Graph& original, const std::string& written,
                   RuntimeOptimizations optimizations, const Draws& draws,
                   const std::vector<std::vector<Tensor>>& expected, const CheckOptions& o, CheckReport& report) {
  const std::string path = written + kUnrewritten;
  CheckReport unrewritten;
  const bool runs =
      export_onnx(original, path).ok() && compare(original, path, optimizations, draws, expected, o, unrewritten).ok();
  if (!runs) {
    const bool is_usual = optimizations == RuntimeOptimizations::Usual;
    return Error{std::string("what would be written") + (is_usual ? ", as the runtime is by default: " : ": ") +
                 status.error().message};
  }
  Difference difference;
  difference.output = original.outputs()[0].name;
  difference.comparable = false;
  difference.note = "what would be written does not run: " + status.error().message;
  report.checked = true;
  report.passed = false;
  report.draws.assign(1, std::string(to_string(draws.kinds[0])));
  report.differences = {difference};
  report.differences_of_draw = {report.differences};
  return Unit{};
}

// Of usual numbers alone: optimizations that are right may overflow elsewhere.
Draws usual_of(const Draws& draws) {
  Draws usual;
  for (size_t k = 0; k < draws.kinds.size(); k++)
    if (draws.kinds[k] == InputKind::Ordinary || draws.kinds[k] == InputKind::Given) {
      usual.kinds.push_back(draws.kinds[k]);
      usual.inputs.push_back(draws.inputs[k]);
    }
  return usual;
}

// As its users will run it: what the runtime's own optimizations make of the result has to be right, too, unless they
// change what the file that was read gives. The report passes before.
Status check_as_usual(const Graph& original, const std::string& written, const Draws& draws,
                      const std::vector<std::vector<Tensor>>& expected, const CheckOptions& o, CheckReport& report) {
  const auto try_out = [&](const std::string& path, CheckReport& own) {
    own.engine = report.engine + ", as it is by default";
    return compare(original, path, RuntimeOptimizations::Usual, usual_of(draws), expected, o, own);
  };
  CheckReport own, of_original;
  const Status status = try_out(written, own);
  if (status.ok() && own.passed) return Unit{};
  if (!try_out(o.original_file, of_original).ok() || !of_original.passed) {
    report.of_runtime =
        "the runtime's default optimizations change what the file that was read gives, so that runs by them say "
        "nothing";
    return Unit{};
  }
  if (!status.ok())
    GOPT_RETURN_IF_ERROR(
        judge_error(status, original, written, RuntimeOptimizations::Usual, usual_of(draws), expected, o, own));
  report = std::move(own);
  return Unit{};
}

// With these numbers for symbols. Errors: also those of the runner, which may take other numbers.
Status check_with(const Graph& original, const Graph& optimized, const std::string& written, const CheckOptions& o,
                  const Substitution& extents, uint64_t seed, CheckReport& report) {
  GOPT_ASSIGN_OR_RETURN(const Draws draws,
                        draw_all(original, o, removed_constants(original, optimized), extents, seed));
  GOPT_ASSIGN_OR_RETURN(const auto expected, o.runner->run(o.original_file, draws.inputs, RuntimeOptimizations::None));
  const Status status = compare(original, written, RuntimeOptimizations::None, draws, expected, o, report);
  if (!status.ok())
    return judge_error(status, original, written, RuntimeOptimizations::None, draws, expected, o, report);
  if (report.passed) {
    GOPT_RETURN_IF_ERROR(check_as_usual(original, written, draws, expected, o, report));
  } else {
    CheckReport again;
    if (!compare(original, o.original_file, RuntimeOptimizations::None, draws, expected, o, again).ok() ||
        !again.passed)
      return Error{"the file gives other results each time that it is run (noise, where no seed is given)"};
  }
  report.extents = print_extents(extents);
  return Unit{};
}

Status run_check(const Graph& original, const Graph& optimized, const CheckOptions& o, uint64_t seed,
                 CheckReport& report) {
  GOPT_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::create());
  const std::string written = (folder.path() / "written.onnx").string();
  GOPT_RETURN_IF_ERROR(export_onnx(optimized, written));
  Status first = Unit{};
  for (const Substitution& extents : choices_of_extents(original, o.inputs)) {
    const Status status = check_with(original, optimized, written, o, extents, seed, report);
    if (status.ok()) return status;
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace

CheckReport check_files(const Graph& original, const Graph& optimized, const CheckOptions& o, uint64_t seed) {
  CheckReport report;
  report.engine = o.runner->name();
  const Status status = run_check(original, optimized, o, seed, report);
  if (!status.ok()) {
    report.checked = report.passed = false;
    report.why_not = status.error().message;
  }
  return report;
}

}  // namespace gopt::driver
