// The emitted code of an optimization, timed on this machine: against the original's, and under another plan.
#pragma once

#include <map>

#include "gopt/driver.h"
#include "plan_timing.h"

namespace gopt::driver {

// Why code for the target cannot be run here; nothing where it can.
std::optional<std::string> why_code_cannot_run(const Target& target);

// Times graphs by the code of their plans, in turns and in this process, on inputs drawn for the first.
class CodeTimer : public ModelTimer {
 public:
  // All have to outlive it; their code is used where it is of a graph that is timed.
  CodeTimer(const DriverOptions& options, const CostSource& costs, PlanTiming& timing,
            std::vector<PlannedGraph*> known);
  std::string name() const override { return "emitted code"; }
  // Errors: those of planning, building and running one of them.
  Result<std::vector<std::vector<double>>> time(const std::vector<Graph>& graphs) override;
  double seconds_saved() const override { return seconds_saved_; }
  // What was made of a graph that was timed last; nothing where it is one of those that were known.
  std::optional<PlannedGraph> take(const Graph& graph);

 private:
  PlannedGraph& planned(const Graph& graph);
  Result<std::vector<std::vector<double>>> time_code(const std::vector<PlannedGraph*>& graphs);

  const DriverOptions& options_;
  const CostSource& costs_;
  PlanTiming& timing_;
  double seconds_saved_ = 0;
  std::map<Hash128, PlannedGraph*> known_;
  std::map<Hash128, PlannedGraph> made_;  // of the last call only: code holds its weights
};

// Kernels were timed one by one, maybe while the machine was busy: where the plan that fuses by rule, or the one that
// analytic costs would choose, is another one, both are timed whole, and the graph keeps the faster one; for a GPU,
// those that take more or fewer of the libraries' kernels, or tiles that leave room for the next kernel, and that
// without launches of several. Nothing where there is no other plan, or no code of one.
std::vector<PlanLatency> keep_faster_plan(PlannedGraph& graph, const DriverOptions& options, const CostSource& costs,
                                          PlanTiming& timing);

}  // namespace gopt::driver
