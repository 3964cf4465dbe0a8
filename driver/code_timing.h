// The emitted code of an optimization, timed on this machine: against the original's, and under another plan.
#pragma once

#include "gopt/driver.h"
#include "planned_graph.h"

namespace gopt::driver {

// Original and result in turns. Errors: those of planning, building and running either.
Result<MeasuredLatency> measure_latency(PlannedGraph& original, PlannedGraph& result, const DriverOptions& options);

// Kernels were timed one by one, maybe while the machine was busy: where the plan that analytic costs would choose is
// another one, both are timed whole, and the graph keeps the faster one. Nothing where there is no other plan, or no
// code of one.
std::optional<PlanLatency> keep_faster_plan(PlannedGraph& graph, const DriverOptions& options, PhaseClock& clock);

}  // namespace gopt::driver
