// What every kind of search keeps account of: the best so far, the graphs that were seen, and when it is enough.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "gopt/clock.h"
#include "search/search.h"

namespace gopt::optimizer {

class SearchRun {
 protected:
  SearchRun(const PatternSet& patterns, CostOracle& costs, const SearchOptions& options,
            const std::function<bool(const Binding&)>& wanted)
      : patterns_(patterns), costs_(costs), options_(options), wanted_(wanted), started_(Clock::now()) {}

  void begin(const Graph& graph);
  Found finish();

  double seconds() const { return seconds_since(started_); }
  bool is_interrupted() const { return options_.stop && options_.stop->load(); }
  bool is_cut_short() const { return is_interrupted() || seconds() >= options_.budget_seconds; }
  // The first that was reached; none: it may go on.
  std::optional<StopReason> limit() const;

  // Gains too small to wait for others like them add up until they count.
  void note_gain();
  void record_point();
  Improvement improvement_to(double cost_ms, const std::string& rule) const;  // of the best until now

  // Each graph once.
  const Cost& estimate(const Graph& graph);
  const Cost& estimate_part(const Graph& part);

  const PatternSet& patterns_;
  CostOracle& costs_;
  const SearchOptions& options_;
  const std::function<bool(const Binding&)>& wanted_;
  Found found_;
  int last_gain_ = 0;  // the last step that made a difference to the cost
  std::unordered_set<Hash128, HashOfHash128> seen_;

 private:
  const Clock::time_point started_;
  double cost_at_last_gain_ = 0;
  std::unordered_map<Hash128, Cost, HashOfHash128> cost_of_, cost_of_part_;
};

}  // namespace gopt::optimizer
