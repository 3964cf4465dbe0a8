#include "code_timing.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>

#include "device_turn.h"
#include "gopt/attention.h"
#include "gopt/codegen.h"
#include "judge.h"
#include "machine.h"
#include "time_in_turns.h"

namespace gopt::driver {

std::optional<std::string> why_code_cannot_run(const Target& target) {
  if (target.kind != TargetKind::Cuda || cuda_machine()) return std::nullopt;
  if (!cuda_toolkit())
    return "CUDA code is built where the CUDA toolkit is (there is no nvcc in PATH, nor in $CUDA_HOME/bin)";
  return "CUDA code is run on a machine with a GPU, cuDNN and cuBLASLt";
}

CodeTimer::CodeTimer(const DriverOptions& options, const CostSource& costs, PlanTiming& timing,
                     std::vector<PlannedGraph*> known)
    : options_(options), costs_(costs), timing_(timing) {
  for (PlannedGraph* graph : known) known_.emplace(graph->graph().hash(), graph);
}

PlannedGraph& CodeTimer::planned(const Graph& graph) {
  const auto known = known_.find(graph.hash());
  return known != known_.end() ? *known->second
                               : made_.try_emplace(graph.hash(), graph, options_.target, costs_).first->second;
}

namespace {

// Some runs of a few milliseconds in all, two at least, the shortest of which counts: the first finds its weights where
// the other model's left them, and what a user runs follows itself. On a GPU what one of them takes where they
// follow each other, since copies and the host's part of a run, which are the same for all plans, would drown what
// tells them apart. Both have to outlive it.
Turn turn_of(RunnableModel& code, const std::map<std::string, Tensor>& inputs, bool is_for_gpu) {
  return [&inputs, &code, is_for_gpu, runs = 0]() mutable -> Result<double> {
    constexpr double kTurnMs = 4, kLeastRuns = 2;
    constexpr int kWarmUp = 2, kMostRuns = 50;
    if (runs == 0) {
      GOPT_ASSIGN_OR_RETURN(const std::vector<double> once, code.time(inputs, kWarmUp, 1));
      runs =
          static_cast<int>(std::clamp(kTurnMs / std::max(once[0], kTurnMs / kMostRuns), kLeastRuns, double{kMostRuns}));
    }
    if (is_for_gpu) return code.time_queued(inputs, runs);
    GOPT_ASSIGN_OR_RETURN(const std::vector<double> times, code.time(inputs, 0, runs));
    return *std::min_element(times.begin(), times.end());
  };
}

// How turns are taken, as the keys of what is kept name it: turns of turn_of() alone, or more of them.
constexpr const char *kSomeRuns = "turns of 4 ms, two runs at least, more where they do not tell",
                     *kFewRuns = "turns of 4 ms, two runs at least", *kQueuedRuns = "turns of runs queued for 4 ms";
const char* turns_of(const Target& target) { return target.kind == TargetKind::Cuda ? kQueuedRuns : kSomeRuns; }

// On inputs drawn for the first. On a machine that others disturb, as many rounds as are asked for may leave open which
// of two is faster where they differ by less than a twentieth: then some seconds of further ones are taken, once,
// since who looks often enough finds a difference between equals.
Result<std::vector<std::vector<double>>> time_some_in_turns(const std::vector<RunnableModel*>& codes, uint64_t seed,
                                                            const TurnLimits& limits, bool is_for_gpu) {
  GOPT_ASSIGN_OR_RETURN(const auto inputs, codes[0]->draw(seed));
  std::vector<Turn> turns;
  for (RunnableModel* code : codes) turns.push_back(turn_of(*code, inputs, is_for_gpu));
  GOPT_ASSIGN_OR_RETURN(auto times, take_turns(turns, limits));
  if (codes.size() != 2 || is_for_gpu || (limits.stop && *limits.stop)) return times;
  const Speedup found = speedup(times[0], times[1]);
  if (found.is_faster() || found.is_slower()) return times;
  constexpr int kMostTimes = 5;
  constexpr double kMoreSeconds = 3;
  GOPT_ASSIGN_OR_RETURN(const auto more, take_turns(turns, {.most_rounds = kMostTimes * limits.most_rounds,
                                                            .least_rounds = 1,
                                                            .enough_seconds = kMoreSeconds,
                                                            .stop = limits.stop}));
  for (size_t code = 0; code < times.size(); code++)
    times[code].insert(times[code].end(), more[code].begin(), more[code].end());
  return times;
}

}  // namespace

Result<std::vector<std::vector<double>>> CodeTimer::time(const std::vector<Graph>& graphs) {
  std::set<Hash128> wanted;
  for (const Graph& graph : graphs) wanted.insert(graph.hash());
  std::erase_if(made_, [&](const auto& made) { return !wanted.contains(made.first); });
  std::vector<PlannedGraph*> all;
  for (const Graph& graph : graphs) all.push_back(&planned(graph));
  GOPT_ASSIGN_OR_RETURN(PlanTiming::Times times,
                        timing_.in_turns(all, turns_of(options_.target), [&] { return time_code(all); }));
  if (times.is_known) seconds_saved_ += times.seconds;
  return std::move(times.ms);
}

Result<std::vector<std::vector<double>>> CodeTimer::time_code(const std::vector<PlannedGraph*>& graphs) {
  const bool is_for_gpu = options_.target.kind == TargetKind::Cuda;
  if (is_for_gpu) timing_.compile_ahead(graphs);
  std::vector<RunnableModel*> codes;
  for (PlannedGraph* graph : graphs) {
    GOPT_ASSIGN_OR_RETURN(codes.emplace_back(), timing_.code_of(*graph));
  }
  const TurnLimits limits{
      .most_rounds = options_.runs, .least_rounds = std::min(5, options_.runs), .stop = options_.search.stop};
  std::optional<DeviceTurn> turn;
  if (is_for_gpu) turn.emplace();
  return time_some_in_turns(codes, options_.seed, limits, is_for_gpu);
}

std::optional<PlannedGraph> CodeTimer::take(const Graph& graph) {
  const auto made = made_.find(graph.hash());
  if (made == made_.end()) return std::nullopt;
  std::optional<PlannedGraph> taken(std::move(made->second));
  made_.erase(made);
  return taken;
}

namespace {

// A run may be shorter than what disturbs it.
Result<std::vector<std::vector<double>>> time_pair(PlannedGraph& graph, PlannedGraph& other,
                                                   const DriverOptions& options, PlanTiming& timing) {
  GOPT_ASSIGN_OR_RETURN(RunnableModel * code, timing.code_of(graph));
  GOPT_ASSIGN_OR_RETURN(RunnableModel * other_code, timing.code_of(other));
  // Seconds are the user's: a few rounds tell plans apart whose difference is worth it.
  const TurnLimits limits{.most_rounds = options.runs,
                          .least_rounds = std::min(5, options.runs),
                          .enough_seconds = 3,
                          .stop = options.search.stop};
  if (!graph.is_for_gpu()) {
    GOPT_ASSIGN_OR_RETURN(const auto inputs, code->draw(options.seed));
    return take_turns({turn_of(*code, inputs, false), turn_of(*other_code, inputs, false)}, limits);
  }
  const DeviceTurn turn;
  return time_some_in_turns({code, other_code}, options.seed, limits, true);
}

std::optional<PlanLatency> keep_faster_of(PlannedGraph& graph, PlannedGraph other, const std::string& how,
                                          const DriverOptions& options, PlanTiming& timing) {
  const auto plan = graph.plan(), other_plan = other.plan();
  if (!plan.ok() || !other_plan.ok() || has_same_kernels(**plan, **other_plan)) return std::nullopt;
  const auto times = timing.in_turns({&graph, &other}, graph.is_for_gpu() ? kQueuedRuns : kFewRuns,
                                     [&] { return time_pair(graph, other, options, timing); });
  if (!times.ok()) return std::nullopt;
  const PairedTimes pair = paired(times->ms[0], times->ms[1]);
  PlanLatency latency{how, pair.first_ms, pair.second_ms, pair.ratio};
  // Beside others who take a processor now and then the median of a few rounds tells little: most have to agree.
  latency.kept_other = pair.ratio >= kTimingNoise && (graph.is_for_gpu() || pair.low > 1);
  latency.is_cached = times->is_known;
  if (latency.kept_other) graph.take_plan_of(std::move(other));
  return latency;
}

template <class Is>
bool has_kernel(PlannedGraph& graph, const Is& is) {
  const auto plan = graph.plan();
  return plan.ok() && std::ranges::any_of((*plan)->kernels, is);
}
bool has_kernel(PlannedGraph& graph, KernelKind kind) {
  return has_kernel(graph, [kind](const Kernel& kernel) { return kernel.kind == kind; });
}

// Of a graph's plan with others, one after another.
struct Comparison {
  PlannedGraph& graph;
  const DriverOptions& options;
  PlanTiming& timing;
  std::vector<PlanLatency> latencies;

  // Whether the plan for this target by these costs takes the place of the graph's.
  bool operator()(const Target& target, const CostSource& costs, const char* how) {
    const auto latency = keep_faster_of(graph, PlannedGraph(graph.graph(), target, costs), how, options, timing);
    if (latency) latencies.push_back(*latency);
    return latency && latency->kept_other;
  }
};

// What a plan is made by.
struct PlanBasis {
  Target target;
  CostSource costs;
};

// A plan by another basis than the one that is kept, where that has what it is about.
struct OtherPlan {
  const char* how;
  std::function<bool(PlannedGraph&)> is_for;
  std::function<void(PlanBasis&)> change;
};

// One after another, each a change of the basis of what was kept so far. A plan's code is compiled in seconds, in which
// it keeps a few processors busy: that of some plans at once, those after one that is kept anew.
class OtherPlans {
 public:
  OtherPlans(PlannedGraph& graph, std::vector<OtherPlan> others, PlanBasis kept, const DriverOptions& options,
             PlanTiming& timing)
      : graph_(graph),
        others_(std::move(others)),
        kept_(std::move(kept)),
        options_(options),
        timing_(timing),
        made_(others_.size()) {}

  std::vector<PlanLatency> keep_fastest() {
    std::vector<PlanLatency> latencies;
    for (size_t k = 0; k < others_.size(); k++) {
      if (k >= end_) make_some(k);
      if (!made_[k]) continue;
      const auto latency = keep_faster_of(graph_, std::move(made_[k]->graph), others_[k].how, options_, timing_);
      if (latency) latencies.push_back(*latency);
      if (!latency || !latency->kept_other) continue;
      kept_ = made_[k]->basis;
      end_ = k + 1;
    }
    return latencies;
  }

 private:
  struct Made {
    PlanBasis basis;
    PlannedGraph graph;  // refers to its costs
    Made(const PlannedGraph& of, PlanBasis by) : basis(std::move(by)), graph(of.graph(), basis.target, basis.costs) {}
  };

  void make_some(size_t first) {
    constexpr size_t kAtOnce = 3;
    end_ = std::min(first + kAtOnce, others_.size());
    std::vector<PlannedGraph*> untimed;
    for (size_t k = first; k < end_; k++) {
      made_[k].reset();
      if (!others_[k].is_for(graph_)) continue;
      PlanBasis basis = kept_;
      others_[k].change(basis);
      made_[k] = std::make_unique<Made>(graph_, std::move(basis));
      const auto plan = graph_.plan(), other = made_[k]->graph.plan();
      const bool is_other = plan.ok() && other.ok() && !has_same_kernels(**plan, **other);
      if (is_other && !timing_.knows({&graph_, &made_[k]->graph}, kQueuedRuns)) untimed.push_back(&made_[k]->graph);
    }
    if (!options_.search.stop || !*options_.search.stop) timing_.compile_ahead(untimed);
  }

  PlannedGraph& graph_;
  const std::vector<OtherPlan> others_;
  PlanBasis kept_;
  const DriverOptions& options_;
  PlanTiming& timing_;
  std::vector<std::unique_ptr<Made>> made_;
  size_t end_ = 0;  // of those that are made by what is kept
};

// What a library's kernel keeps the next one from doing is a part of its time, as if that were a tile. Where others
// follow, it is less; between tiles that would all have been launched ahead, it is more. What follows a tile whose
// blocks fill the multiprocessors gets ready as late, which the tile's own time does not say. Clusters of blocks that
// divide a depth take longer to begin where they are timed than behind a tile of a model. Kernels in one launch, too,
// are timed without those around them: launched one by one, each gets ready while others run. What a tile does to
// its source first makes each of its slices wait, which other kernels beside it may hide or not.
std::vector<PlanLatency> keep_faster_on_gpu(PlannedGraph& graph, const DriverOptions& options, const CostSource& costs,
                                            PlanTiming& timing) {
  constexpr double kReadyMs = 1.3e-3;    // what a tile does ahead: it is launched, and its first weights come
  constexpr double kDividedMs = 1.0e-3;  // that those of eight blocks were seen to be faster in models, beside others
  if (options.target.without.contains(kDependentLaunch)) return {};
  const auto any = [](PlannedGraph&) { return true; };
  const auto has_prologue = [](PlannedGraph& of) {
    return has_kernel(of, [](const Kernel& kernel) { return kernel.prologue.has_value(); });
  };
  const auto has_sequence = [](PlannedGraph& of) { return has_kernel(of, KernelKind::Sequence); };
  const auto has_group = [](PlannedGraph& of) { return has_kernel(of, KernelKind::Group); };
  const auto is_quantized = [](PlannedGraph& of) {
    return has_kernel(of, [](const Kernel& kernel) { return kernel.quantized.has_value(); });
  };
  return OtherPlans(graph,
                    {{kPlanByLibraries, any, [](PlanBasis& b) { b.costs.library_bonus_ms = kReadyMs; }},
                     {kPlanWithoutLibraries, any, [](PlanBasis& b) { b.costs.library_bonus_ms = -kReadyMs; }},
                     {kPlanOfDividedDepths, any, [](PlanBasis& b) { b.costs.division_bonus_ms = kDividedMs; }},
                     {kPlanOfSmallTiles, any, [](PlanBasis& b) { b.costs.crowding_ms = kReadyMs; }},
                     {kPlanWithoutPrologues, has_prologue, [](PlanBasis& b) { b.target.without.insert(kPrologues); }},
                     {kPlanOfFloats, is_quantized, [](PlanBasis& b) { b.target.without.insert(kQuantized); }},
                     {kPlanWithoutGroups, has_group, [](PlanBasis& b) { b.target.without.insert(kGroupedLaunch); }},
                     {kPlanWithoutSequences, has_sequence, [](PlanBasis& b) { b.target.without.insert(kSequences); }}},
                    {options.target, costs}, options, timing)
      .keep_fastest();
}

}  // namespace

std::vector<PlanLatency> keep_faster_plan(PlannedGraph& graph, const DriverOptions& options, const CostSource& costs,
                                          PlanTiming& timing) {
  if (graph.is_for_gpu()) return keep_faster_on_gpu(graph, options, costs, timing);
  Comparison compare{graph, options, timing, {}};
  Target kept = options.target;
  if (kept.has_tiles) {
    // The processor's matrix unit (AMX) is shared by what else runs on the core: times of a minute in which it was not
    // choose tiles that are slow in the next.
    Target without_tiles = kept;
    without_tiles.has_tiles = false;
    if (compare(without_tiles, costs, kPlanWithoutTiles)) kept = without_tiles;
  }
  if (has_kernel(graph, [](const Kernel& kernel) { return kernel.quantized.has_value(); })) {
    Target of_floats = kept;
    of_floats.without.insert(kQuantized);
    if (compare(of_floats, costs, kPlanOfFloats)) kept = of_floats;
  }
  Target by_rules = kept;
  by_rules.without.insert(kFusionByCost);
  compare(by_rules, costs, kPlanByRules);
  compare(kept, analytic_costs(graph.graph()), kAnalyticPlan);
  if (has_kernel(graph, KernelKind::Attention)) {
    Target in_pieces = kept;
    in_pieces.without.insert(kAttention);
    compare(in_pieces, costs, kPlanInPieces);
  }
  return std::move(compare.latencies);
}

}  // namespace gopt::driver
