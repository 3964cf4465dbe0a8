#include "code_timing.h"

#include <algorithm>
#include <set>

#include "device_turn.h"
#include "gopt/attention.h"
#include "gopt/codegen.h"
#include "machine.h"
#include "time_in_turns.h"

namespace gopt::driver {

std::optional<std::string> why_code_cannot_run(const Target& target) {
  if (target.kind != TargetKind::Cuda || cuda_machine()) return std::nullopt;
  if (!cuda_toolkit())
    return "CUDA code is built where the CUDA toolkit is (there is no nvcc in PATH, nor in $CUDA_HOME/bin)";
  return "CUDA code is run on a machine with a GPU, cuDNN and cuBLASLt";
}

CodeTimer::CodeTimer(const DriverOptions& options, const CostSource& costs, std::vector<PlannedGraph*> known)
    : options_(options), costs_(costs) {
  for (PlannedGraph* graph : known) known_.emplace(graph->graph().hash(), graph);
}

PlannedGraph& CodeTimer::planned(const Graph& graph) {
  const auto known = known_.find(graph.hash());
  return known != known_.end() ? *known->second
                               : made_.try_emplace(graph.hash(), graph, options_.target, costs_).first->second;
}

namespace {

// Some runs of a few milliseconds in all, the shortest of which counts. Both have to outlive it.
Turn turn_of(RunnableModel& code, const std::map<std::string, Tensor>& inputs) {
  return [&inputs, &code, runs = 0]() mutable -> Result<double> {
    constexpr double kTurnMs = 4;
    constexpr int kWarmUp = 2, kMostRuns = 50;
    if (runs == 0) {
      GOPT_ASSIGN_OR_RETURN(const std::vector<double> once, code.time(inputs, kWarmUp, 1));
      runs = static_cast<int>(std::clamp(kTurnMs / std::max(once[0], kTurnMs / kMostRuns), 1.0, double{kMostRuns}));
    }
    GOPT_ASSIGN_OR_RETURN(const std::vector<double> times, code.time(inputs, 0, runs));
    return *std::min_element(times.begin(), times.end());
  };
}

}  // namespace

Result<std::vector<std::vector<double>>> CodeTimer::time(const std::vector<Graph>& graphs) {
  std::set<Hash128> wanted;
  for (const Graph& graph : graphs) wanted.insert(graph.hash());
  std::erase_if(made_, [&](const auto& made) { return !wanted.contains(made.first); });
  std::map<std::string, Tensor> inputs;
  std::vector<Turn> turns;
  for (const Graph& graph : graphs) {
    GOPT_ASSIGN_OR_RETURN(RunnableModel * code, planned(graph).code_for_target());
    if (turns.empty()) {
      GOPT_ASSIGN_OR_RETURN(inputs, code->draw(options_.seed));
    }
    turns.push_back(turn_of(*code, inputs));
  }
  const TurnLimits limits{
      .most_rounds = options_.runs, .least_rounds = std::min(5, options_.runs), .stop = options_.search.stop};
  std::optional<DeviceTurn> turn;
  if (options_.target.kind == TargetKind::Cuda) turn.emplace();
  return take_turns(turns, limits);
}

std::optional<PlannedGraph> CodeTimer::take(const Graph& graph) {
  const auto made = made_.find(graph.hash());
  if (made == made_.end()) return std::nullopt;
  std::optional<PlannedGraph> taken(std::move(made->second));
  made_.erase(made);
  return taken;
}

namespace {

// A run on a GPU may be shorter than what disturbs it.
Result<PairedTimes> time_some_in_turns(RunnableModel& first, RunnableModel& second, uint64_t seed,
                                       const TurnLimits& limits) {
  GOPT_ASSIGN_OR_RETURN(const auto inputs, first.draw(seed));
  GOPT_ASSIGN_OR_RETURN(const auto times, take_turns({turn_of(first, inputs), turn_of(second, inputs)}, limits));
  return paired(times[0], times[1]);
}

std::optional<PlanLatency> keep_faster_of(PlannedGraph& graph, PlannedGraph other, const std::string& how,
                                          const DriverOptions& options) {
  const auto plan = graph.plan(), other_plan = other.plan();
  if (!plan.ok() || !other_plan.ok() || has_same_kernels(**plan, **other_plan)) return std::nullopt;
  const auto code = graph.code_for_target(), other_code = other.code_for_target();
  if (!code.ok() || !other_code.ok()) return std::nullopt;
  // Seconds are the user's: a few rounds tell plans apart whose difference is worth it.
  const TurnLimits limits{.most_rounds = options.runs,
                          .least_rounds = std::min(5, options.runs),
                          .enough_seconds = 3,
                          .stop = options.search.stop};
  std::optional<DeviceTurn> turn;
  if (graph.is_for_gpu()) turn.emplace();
  const auto times = graph.is_for_gpu() ? time_some_in_turns(**code, **other_code, options.seed, limits)
                                        : time_in_turns(**code, **other_code, options.seed, limits);
  if (!times.ok()) return std::nullopt;
  PlanLatency latency{how, times->first_ms, times->second_ms, times->ratio};
  latency.kept_other = times->ratio >= kTimingNoise;
  if (latency.kept_other) graph.take_plan_of(std::move(other));
  return latency;
}

bool has_attention(PlannedGraph& graph) {
  const auto plan = graph.plan();
  return plan.ok() && std::ranges::any_of((*plan)->kernels,
                                          [](const Kernel& kernel) { return kernel.kind == KernelKind::Attention; });
}

// What a library's kernel keeps the next one from doing is a part of its time, as if that were a tile. Where others
// follow, it is less; between tiles that would all have been launched ahead, it is more.
std::vector<PlanLatency> keep_faster_on_gpu(PlannedGraph& graph, const DriverOptions& options,
                                            const CostSource& costs) {
  constexpr double kReadyMs = 1.3e-3;  // what a tile does ahead: it is launched, and its first weights come
  if (options.target.without.contains(kDependentLaunch)) return {};
  std::vector<PlanLatency> latencies;
  for (const auto& [how, bonus_ms] : {std::pair(kPlanByLibraries, kReadyMs), {kPlanWithoutLibraries, -kReadyMs}}) {
    CostSource other = costs;
    other.library_bonus_ms = bonus_ms;
    const auto latency = keep_faster_of(graph, PlannedGraph(graph.graph(), options.target, other), how, options);
    if (latency) latencies.push_back(*latency);
  }
  return latencies;
}

}  // namespace

std::vector<PlanLatency> keep_faster_plan(PlannedGraph& graph, const DriverOptions& options, const CostSource& costs,
                                          PhaseClock& clock) {
  const PhaseClock::Running running(clock, "timing the code");
  if (graph.is_for_gpu()) return keep_faster_on_gpu(graph, options, costs);
  Target by_rules = options.target;
  by_rules.without.insert(kFusionByCost);
  Target in_pieces = options.target;
  in_pieces.without.insert(kAttention);
  const CostSource analytic = analytic_costs(graph.graph());
  std::vector<PlanLatency> latencies;
  const auto add = [&](const std::optional<PlanLatency>& latency) {
    if (latency) latencies.push_back(*latency);
  };
  add(keep_faster_of(graph, PlannedGraph(graph.graph(), by_rules, costs), kPlanByRules, options));
  add(keep_faster_of(graph, PlannedGraph(graph.graph(), options.target, analytic), kAnalyticPlan, options));
  if (has_attention(graph))
    add(keep_faster_of(graph, PlannedGraph(graph.graph(), in_pieces, costs), kPlanInPieces, options));
  return latencies;
}

}  // namespace gopt::driver
