#include "code_timing.h"

#include "time_in_turns.h"

namespace gopt::driver {

Result<MeasuredLatency> measure_latency(PlannedGraph& original, PlannedGraph& result, const DriverOptions& options) {
  GOPT_ASSIGN_OR_RETURN(RunnableModel * a, original.code());
  GOPT_ASSIGN_OR_RETURN(RunnableModel * b, result.code());
  GOPT_ASSIGN_OR_RETURN(const PairedTimes times, time_in_turns(*a, *b, options.seed, options.runs));
  GOPT_ASSIGN_OR_RETURN(const Plan* plan, result.plan());
  return MeasuredLatency{times.first_ms, times.second_ms, times.ratio, print_plan(*plan)};
}

std::optional<PlanLatency> keep_faster_plan(PlannedGraph& graph, const DriverOptions& options, PhaseClock& clock) {
  const CostSource analytic;
  PlannedGraph other(graph.graph(), options.target, analytic);
  const auto plan = graph.plan(), other_plan = other.plan();
  if (!plan.ok() || !other_plan.ok() || has_same_kernels(**plan, **other_plan)) return std::nullopt;
  const PhaseClock::Running running(clock, "timing the code");
  const auto code = graph.code(), other_code = other.code();
  if (!code.ok() || !other_code.ok()) return std::nullopt;
  const auto times = time_in_turns(**code, **other_code, options.seed, options.runs);
  if (!times.ok()) return std::nullopt;
  PlanLatency latency{times->first_ms, times->second_ms, times->ratio};
  latency.kept_analytic = times->ratio >= kTimingNoise;
  if (latency.kept_analytic) graph.take_plan_of(std::move(other));
  return latency;
}

}  // namespace gopt::driver
