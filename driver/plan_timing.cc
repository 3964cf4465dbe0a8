#include "plan_timing.h"

#include "build_plan.h"
#include "gopt/clock.h"

namespace gopt::driver {
namespace {

// In the order in which they take turns.
Result<std::string> signature_of(const std::vector<PlannedGraph*>& graphs, const std::string& kind) {
  std::string text = kind;
  for (PlannedGraph* graph : graphs) {
    GOPT_ASSIGN_OR_RETURN(const Plan* plan, graph->plan());
    text += " " + plan_signature(*plan);
  }
  return text;
}

}  // namespace

Result<RunnableModel*> PlanTiming::code_of(PlannedGraph& graph) {
  const PhaseClock::Running running(clock_, "building the code");
  return graph.code_for_target();
}

Status PlanTiming::must_build(PlannedGraph& graph) {
  GOPT_ASSIGN_OR_RETURN(const std::string signature, signature_of({&graph}, "built"));
  const bool is_known = cache_ && cache_->find_plans(signature);
  if (is_known && options_.check.engine == CheckEngine::Off) return Unit{};
  const auto start = Clock::now();
  GOPT_RETURN_IF_ERROR(code_of(graph));
  if (!is_known) keep(signature, {.seconds = seconds_since(start)});
  return Unit{};
}

void PlanTiming::compile_ahead(const std::vector<PlannedGraph*>& graphs) {
  std::vector<const Plan*> plans;
  for (PlannedGraph* graph : graphs)
    if (const auto plan = graph->plan(); plan.ok() && !graph->has_code_for_target()) plans.push_back(*plan);
  if (plans.size() < 2) return;
  const PhaseClock::Running running(clock_, "building the code");
  driver::compile_ahead(plans);
}

// Inputs may decide how long a run takes; who asks for more rounds wants to know better.
Result<std::string> PlanTiming::key_of(const std::vector<PlannedGraph*>& graphs, const std::string& kind) const {
  return signature_of(graphs, kind + " " + std::to_string(options_.seed) + " " + std::to_string(options_.runs));
}

std::optional<PlanTimes> PlanTiming::find(const std::string& key, size_t graphs) const {
  auto known = cache_ ? cache_->find_plans(key) : std::nullopt;
  return known && known->ms.size() == graphs ? std::move(known) : std::nullopt;
}

bool PlanTiming::knows(const std::vector<PlannedGraph*>& graphs, const std::string& kind) const {
  const auto key = key_of(graphs, kind);
  return key.ok() && find(*key, graphs.size());
}

Result<PlanTiming::Times> PlanTiming::in_turns(const std::vector<PlannedGraph*>& graphs, const std::string& kind,
                                               const std::function<Result<std::vector<std::vector<double>>>()>& time) {
  GOPT_ASSIGN_OR_RETURN(const std::string signature, key_of(graphs, kind));
  if (auto known = find(signature, graphs.size())) return Times{*std::move(known), true};
  const auto start = Clock::now();
  Times times;
  GOPT_ASSIGN_OR_RETURN(times.ms, time());
  times.seconds = seconds_since(start);
  timed_++;
  const bool is_interrupted = options_.search.stop && *options_.search.stop;
  if (!is_interrupted) keep(signature, times);
  return times;
}

// The times are good, whether or not they can be kept.
void PlanTiming::keep(const std::string& signature, PlanTimes times) {
  if (!cache_) return;
  cache_->put_plans(signature, std::move(times));
  const Status saved = cache_->save();
  if (!saved.ok() && notes_.empty()) notes_.push_back("times of whole plans are not kept: " + saved.error().message);
}

}  // namespace gopt::driver
