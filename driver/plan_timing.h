// The plans of one optimization that are built and timed whole: what the cache knows of them is not timed again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gopt/driver.h"
#include "planned_graph.h"

namespace gopt::driver {

class PlanTiming {
 public:
  // Both have to outlive it.
  PlanTiming(const DriverOptions& options, PhaseClock& clock) : options_(options), clock_(clock) {}

  // From now on, times of this machine are kept there; null: nowhere.
  void keep_in(std::shared_ptr<KernelCache> cache) { cache_ = std::move(cache); }

  // The code of a graph's plan. Errors: those of planning and building.
  Result<RunnableModel*> code_of(PlannedGraph& graph);
  // That there is such code; where it is not checked, it is enough that there was. Errors: likewise.
  Status must_build(PlannedGraph& graph);

  struct Times : PlanTimes {
    bool is_known = false;  // from the cache
  };
  // Compiles the code of these graphs' plans at once, as many files as there are processors for: code_of then finds it
  // done. What cannot be built is left for it to tell.
  void compile_ahead(const std::vector<PlannedGraph*>& graphs);

  // Whether the cache has what in_turns would give.
  bool knows(const std::vector<PlannedGraph*>& graphs, const std::string& kind) const;
  // What these graphs' plans take in turns: as the cache has it, else by `time`, unless that was interrupted kept
  // there. `kind` says how the turns are taken. Errors: those of planning and of `time`.
  Result<Times> in_turns(const std::vector<PlannedGraph*>& graphs, const std::string& kind,
                         const std::function<Result<std::vector<std::vector<double>>>()>& time);

  int timed() const { return timed_; }                              // times that `time` was called, and came to an end
  const std::vector<std::string>& notes() const { return notes_; }  // why times are not kept

 private:
  // What the cache has under it, of so many graphs.
  std::optional<PlanTimes> find(const std::string& key, size_t graphs) const;
  Result<std::string> key_of(const std::vector<PlannedGraph*>& graphs, const std::string& kind) const;
  void keep(const std::string& signature, PlanTimes times);

  const DriverOptions& options_;
  PhaseClock& clock_;
  std::shared_ptr<KernelCache> cache_;
  int timed_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace gopt::driver
