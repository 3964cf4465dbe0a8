// The kernel costs of one optimization: whose times they are, and what was timed for them, within one budget, which all
// runs with one cache share.
#pragma once

#include <set>

#include "gopt/driver.h"
#include "machine.h"
#include "planned_graph.h"

namespace gopt::driver {

struct PreparedCosts {
  bool has_measured_costs = false;
  std::string machine;             // whose times they are
  std::vector<std::string> notes;  // what the user should know of them
};

class KernelTiming {
 public:
  KernelTiming(const DriverOptions& options, CostSource& costs, PhaseClock& clock)
      : options_(options), costs_(costs), clock_(clock) {}

  // With measured costs: the original's kernels, measured, calibrate the rest. Where kernels cannot be built or the
  // graph cannot be planned, costs are analytic. Errors: a cache that cannot be read, or is of several GPUs.
  Result<PreparedCosts> prepare(const Graph& original);

  // Times the kernels that a plan of the graph may choose and that the cache lacks; how many. Errors: those of planning
  // and building.
  Result<int> measure(const Graph& graph);

  // From now on what is known of kernels of these graphs alone says what those take that were not timed.
  void know_of(const std::vector<Graph>& graphs);

  // Times those that the cheapest plan of the graph would run, and that the cache lacks; how many. A part of the budget
  // is kept for it. Errors: likewise.
  Result<int> measure_chosen(const Graph& graph);

  // Times launches of several kernels of that plan; how many. Errors: likewise.
  Result<int> measure_groups(const std::vector<Graph>& graphs);

  // Whether all that the cheapest plan of the graph would run was timed, where others' estimates count so much.
  bool knows(const Graph& graph, double unknown_factor) const;

  // Null: analytic costs.
  std::shared_ptr<const KernelCache> cache() const { return costs_.cache; }
  // Where times of this machine are kept; null: nowhere.
  std::shared_ptr<KernelCache> cache_of_here() const { return can_time_ ? costs_.cache : nullptr; }

  // Whether a kernel that has no time may still get one.
  bool goes_on() const;

  // Once, in a run that timed any, where that is not so: whether the kernels of this result have their times, no launch
  // of several lacks one, and most of what was kept for them is left. `measure` spends it from then on.
  bool gives_rest(const Graph& graph);
  int timed() const { return timed_; }
  double seconds() const { return seconds_; }

 private:
  Result<int> time(const std::vector<KernelSpec>& specs, double budget_seconds);
  double kept_seconds() const;  // for a result's kernels
  void add_known(const std::vector<KernelSpec>& specs);
  Result<ChosenMachine> machine_for(const KernelCache& cache) const;
  bool has_enough_times(std::vector<std::string>& notes) const;
  bool is_known(const KernelSpec& spec) const;

  const DriverOptions& options_;
  CostSource& costs_;
  PhaseClock& clock_;
  bool can_time_ = true;
  std::set<std::string> known_;  // signatures of costs_.known
  int timed_ = 0;
  double seconds_ = 0;
  std::string budget_;  // under which the cache keeps the seconds that were spent; empty: not yet known
  double spent_before_ = 0;
  bool weights_from_memory_ = false, gave_rest_ = false;
};

}  // namespace gopt::driver
