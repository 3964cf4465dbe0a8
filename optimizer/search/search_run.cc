#include "search/search_run.h"

namespace gopt::optimizer {

void SearchRun::begin(const Graph& graph) {
  found_.graph = graph;
  found_.cost = estimate(graph);
  cost_at_last_gain_ = found_.cost.time_ms;
  seen_.insert(graph.hash());
  record_point();
  if (options_.improved) options_.improved({.before_ms = found_.cost.time_ms, .after_ms = found_.cost.time_ms});
}

Found SearchRun::finish() {
  found_.graphs_seen = static_cast<long>(seen_.size());
  return std::move(found_);
}

std::optional<StopReason> SearchRun::limit() const {
  if (is_interrupted()) return StopReason::Interrupted;
  if (seconds() >= options_.budget_seconds) return StopReason::TimeLimit;
  if (found_.steps >= options_.max_steps) return StopReason::StepLimit;
  if (found_.steps - last_gain_ >= options_.patience) return StopReason::NoGain;
  return std::nullopt;
}

void SearchRun::note_gain() {
  constexpr double kWorthWaiting = 1e-3;
  if (found_.cost.time_ms > (1 - kWorthWaiting) * cost_at_last_gain_) return;
  last_gain_ = found_.steps;
  cost_at_last_gain_ = found_.cost.time_ms;
}

void SearchRun::record_point() {
  found_.trajectory.push_back({found_.steps, seconds(), static_cast<long>(seen_.size()), found_.cost.time_ms});
}

Improvement SearchRun::improvement_to(double cost_ms, const std::string& rule) const {
  Improvement improvement{found_.steps, seconds(), rule};
  improvement.before_ms = found_.cost.time_ms;
  improvement.after_ms = cost_ms;
  return improvement;
}

const Cost& SearchRun::estimate(const Graph& graph) {
  const auto [entry, is_new] = cost_of_.try_emplace(graph.hash());
  if (is_new) entry->second = costs_.estimate(graph);
  return entry->second;
}

const Cost& SearchRun::estimate_part(const Graph& part) {
  const auto [entry, is_new] = cost_of_part_.try_emplace(part.hash());
  if (is_new) entry->second = costs_.estimate_part(part);
  return entry->second;
}

}  // namespace gopt::optimizer
