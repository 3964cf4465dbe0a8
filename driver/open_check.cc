#include "open_check.h"

#include <algorithm>

#include "amplification.h"
#include "answered_run.h"
#include "check.h"
#include "check_inputs.h"
#include "check_integers.h"
#include "checked_part.h"
#include "draw_inputs.h"
#include "graph_runner.h"

namespace gopt::driver {
namespace {

class OpenChecker {
 public:
  OpenChecker(PlannedGraph& graph, const DriverOptions& options)
      : graph_(graph), options_(options), demands_(size_demands(graph.graph(), options.target.open)) {}

  Status run(CheckReport& report) {
    GOPT_ASSIGN_OR_RETURN(code_, graph_.code_for_target());
    std::vector<Substitution> small = choices_of_extents(graph_.graph()), near = {near_usual(), usual()};
    near.insert(near.end(), small.rbegin(), small.rend());
    small.push_back(usual());
    GOPT_RETURN_IF_ERROR(check_first(small, report));
    if (report.passed) GOPT_RETURN_IF_ERROR(check_first(near, report));
    for (const OpenExtent& extent : options_.target.open)
      if (report.passed) check_empty(extent.symbol, small, report);
    return Unit{};
  }

 private:
  // At the first small size, with one extent 0, that the code takes.
  void check_empty(AtomId symbol, const std::vector<Substitution>& small, CheckReport& report) {
    for (Substitution size : small) {
      CheckReport empty = report;
      size[symbol] = Index(0);
      if (!check_at(within_maxima(size), empty).ok()) continue;
      empty.extents = report.extents;
      report = std::move(empty);
      return;
    }
  }

  Substitution usual() const {
    Substitution extents;
    for (const OpenExtent& extent : options_.target.open) extents[extent.symbol] = Index(extent.usual);
    return extents;
  }

  // Odd numbers, so that vectors and blocks have something left over.
  Substitution near_usual() const {
    Substitution extents;
    for (const OpenExtent& extent : options_.target.open)
      extents[extent.symbol] = Index(std::max<int64_t>(1, extent.usual - extent.usual / 4 - 1) | 1);
    return extents;
  }

  Substitution within_maxima(Substitution extents) const {
    for (const OpenExtent& extent : options_.target.open)
      if (const auto it = extents.find(extent.symbol); it != extents.end() && extent.maximum)
        it->second = Index(std::min(it->second.constant(), *extent.maximum));
    return extents;
  }

  // At the first size that the model has a meaning at.
  Status check_first(const std::vector<Substitution>& sizes, CheckReport& report) {
    Status last = Error{"there is no size to try"};
    for (const Substitution& size : sizes) {
      last = check_at(within_maxima(size), report);
      if (last.ok()) return last;
    }
    return last;
  }

  // That the model has a meaning there, and that its inputs are no memory that others need. Errors: that it is not so.
  Status may_draw(const Substitution& extents) const {
    constexpr int64_t kMostElements = int64_t{1} << 27;
    Environment sizes;
    for (const auto& [symbol, extent] : extents) sizes[symbol] = extent.constant();
    for (const SizeDemand& demand : demands_)
      if (!evaluate(demand.cond, sizes).value_or(true)) return Error{"there the model has no meaning: " + demand.what};
    for (const Value& input : graph_.graph().inputs()) {
      int64_t count = 1;
      for (const Index& extent : input.type().shape.value_or(Shape{})) {
        const int64_t number = evaluate(extent, sizes).value_or(1);
        if (number > 0 && count > kMostElements / number)
          return Error{"there input " + input.node->name + " is too large"};
        count *= number;
      }
    }
    return Unit{};
  }

  Status check_at(const Substitution& extents, CheckReport& report) {
    GOPT_RETURN_IF_ERROR(may_draw(extents));
    GOPT_ASSIGN_OR_RETURN(auto inputs, draw_inputs_at(graph_.graph(), options_.seed + 1, extents));
    GOPT_ASSIGN_OR_RETURN(const CheckedPart part, part_to_check(graph_.graph(), graph_.graph(), inputs));
    if (!part.cut.empty()) {
      GOPT_ASSIGN_OR_RETURN(auto given, draw_inputs(part.original, options_.seed + 1));
      inputs.merge(given);
      report.nodes = count_operators(graph_.graph());
      report.nodes_checked = part.nodes_checked;
      report.left_out = part.left_out;
    }
    // A window as large as an image, whose extents are as open, would be run for hours.
    constexpr double kMostOperations = 2e11;
    const Target target{TargetKind::Cpu, options_.target.threads};
    const double operations = operations_of(part.original, target);
    if (operations > kMostOperations) return Error{"there it would take too long to run"};
    GOPT_ASSIGN_OR_RETURN(const auto found, run_answered(*code_, part, inputs));
    const CostSource costs;
    const bool is_quick = operations < kInterpretOften || is_interpreted_soon(part.original);
    report.engine = is_quick ? kInterpreter : kCpu;
    report.extents = part.extents;
    PlannedGraph alone(part.original, target, costs);
    GOPT_ASSIGN_OR_RETURN(const GraphRunner reference, runner_for(alone, report.engine, products_for(operations)));
    GOPT_ASSIGN_OR_RETURN(const std::vector<Tensor> expected, reference.run(inputs));
    add_draw(report, part.original, InputKind::Ordinary, expected, found, tolerance_of_code(options_));
    GOPT_RETURN_IF_ERROR(allow_for_amplification(report, reference, inputs, expected, found,
                                                 tolerance_of_code(options_), options_.target.precision,
                                                 options_.seed));
    return check_integers(
        report, reference, [&](const auto& given) { return run_answered(*code_, part, given); }, inputs, options_.check,
        tolerance_of_code(options_), options_.seed + 1);
  }

  PlannedGraph& graph_;
  const DriverOptions& options_;
  const std::vector<SizeDemand> demands_;
  RunnableModel* code_ = nullptr;
};

}  // namespace

CheckReport check_open_code(PlannedGraph& graph, const DriverOptions& options) {
  CheckReport report;
  const Status status = OpenChecker(graph, options).run(report);
  if (!status.ok() && !report.checked) report.why_not = status.error().message;
  return report;
}

}  // namespace gopt::driver
