// Which of two plans is emitted is decided by running them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "../../driver/machine.h"
#include "../../driver/measured_costs.h"
#include "../../driver/plan_timing.h"
#include "../../driver/planned_graph.h"
#include "../../driver/time_in_turns.h"
#include "../support/graph_with_weights.h"
#include "../support/test_folder.h"
#include "../support/text_files.h"
#include "gopt/driver.h"
#include "gopt/rule.h"
#include "gopt/tile.h"

namespace gopt::driver {
namespace {

// A model whose runs take what is written here, one after another.
class ScriptedModel : public RunnableModel {
 public:
  explicit ScriptedModel(std::vector<double> times) : times_(std::move(times)) {}
  std::vector<ModelValue> inputs() const override { return {}; }
  std::vector<ModelValue> outputs() const override { return {}; }
  Result<std::vector<Tensor>> run(const std::map<std::string, Tensor>&) override { return std::vector<Tensor>{}; }
  Result<std::vector<double>> time(const std::map<std::string, Tensor>&, int, int runs) override {
    if (next_ + static_cast<size_t>(runs) > times_.size()) return Error{"it has no more runs"};
    std::vector<double> taken(times_.begin() + static_cast<std::ptrdiff_t>(next_),
                              times_.begin() + static_cast<std::ptrdiff_t>(next_) + runs);
    next_ += static_cast<size_t>(runs);
    return taken;
  }
  Result<std::vector<std::pair<std::string, double>>> profile(const std::map<std::string, Tensor>&, int) override {
    return std::vector<std::pair<std::string, double>>{};
  }
  Result<std::map<std::string, Tensor>> draw(uint64_t) const override { return std::map<std::string, Tensor>{}; }
  std::string engine() const override { return "scripted"; }

 private:
  std::vector<double> times_;
  size_t next_ = 0;
};

TEST(TimeInTurns, RatioIsOfNeighbouringRuns) {
  // The machine is ten times slower for a while: the medians of each differ by chance, the ratio of neighbours does
  // not.
  ScriptedModel first({2, 20, 20, 2, 20}), second({1, 10, 10, 1, 10});
  const auto times = time_in_turns(first, second, 0, {.most_rounds = 5});
  ASSERT_TRUE(times.ok());
  EXPECT_EQ(times->ratio, 2);
  EXPECT_EQ(times->first_ms, 20);
  EXPECT_EQ(times->second_ms, 10);
}

TEST(TimeInTurns, AFailedRunIsAnError) {
  ScriptedModel first({1, 1, 1}), second({1, 1});
  const auto times = time_in_turns(first, second, 0, {.most_rounds = 3});
  ASSERT_FALSE(times.ok());
  EXPECT_EQ(times.error().message, "it has no more runs");
}

Graph convolution(int extent = 28, int channels = 64) {
  const std::string side = std::to_string(extent), count = std::to_string(channels);
  return graph_with_weights("  input x : f32[1," + count + "," + side + "," + side + "]\n  input w : f32[" + count +
                            "," + count + R"(,3,3]
  a = Conv(x, w) {pads=[1,1,1,1]}
  b = Relu(a)
  output y = b
)");
}

DriverOptions with_cache(const std::string& path) {
  DriverOptions options;
  options.search.search = SearchKind::None;
  options.measured_costs = true;
  options.cache = path;
  options.wants_code = true;
  options.runs = 9;
  return options;
}

// A cache that says of each kernel the opposite of what analytic costs do: its plan is another one.
void write_reversed_times(const Graph& graph, const std::string& path) {
  const Target target;
  const auto specs = admitted_kernels(graph, target);
  ASSERT_TRUE(specs.ok());
  auto loaded = KernelCache::load(path, cpu_machine());
  ASSERT_TRUE(loaded.ok());
  KernelCache cache = *std::move(loaded);
  const auto analytic = CostSource().make();
  for (const KernelSpec& spec : *specs) {
    const Plan plan = timing_plan({spec});
    cache.put(kernel_signature(spec), 1 / analytic->time_ms(plan, plan.kernels[0]));
  }
  ASSERT_TRUE(cache.save().ok());
}

TEST(PlanChoice, WhereMeasuredAndAnalyticPlansDifferTheFasterOneIsEmitted) {
  const TestFolder folder;
  const Graph graph = convolution();
  const std::string path = folder.file("times");
  write_reversed_times(graph, path);
  const auto outcome = optimize_graph(graph, {}, with_cache(path));
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  ASSERT_FALSE(outcome->plan_latencies.empty());
  const PlanLatency& latency = outcome->plan_latencies.back();
  EXPECT_EQ(latency.other, kAnalyticPlan);
  EXPECT_GT(latency.own_ms, 0);
  EXPECT_GT(latency.other_ms, 0);
  EXPECT_EQ(latency.kept_other, latency.ratio >= kTimingNoise);
  const CostSource analytic;
  PlannedGraph by_analytic(graph, Target{}, analytic);
  ASSERT_TRUE(outcome->plan);
  EXPECT_EQ(has_same_kernels(*outcome->plan, **by_analytic.plan()), latency.kept_other);
}

// Times of a minute in which the core's matrix unit was free.
TEST(PlanChoice, WhereMatrixTilesAreChosenThePlanWithoutThemIsTimed) {
  const TestFolder folder;
  const Graph graph = convolution();
  DriverOptions options = with_cache(folder.file("times"));
  options.target.has_tiles = true;
  const auto specs = admitted_kernels(graph, options.target);
  ASSERT_TRUE(specs.ok());
  KernelCache cache = *KernelCache::load(options.cache, cpu_machine());
  for (const KernelSpec& spec : *specs)
    cache.put(kernel_signature(spec),
              spec.kernel.kind == KernelKind::Convolution && spec.kernel.implementation != "tiles-x6" ? 1e-2 : 1e-5);
  ASSERT_TRUE(cache.save().ok());
  const auto outcome = optimize_graph(graph, {}, options);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  ASSERT_FALSE(outcome->plan_latencies.empty());
  const PlanLatency* const latency = outcome->plan_latencies.data();
  EXPECT_EQ(latency->other, kPlanWithoutTiles);
  EXPECT_GT(latency->own_ms, 0);
  EXPECT_GT(latency->other_ms, 0);
  ASSERT_TRUE(outcome->plan);
  const bool has_tiles =
      std::ranges::any_of(outcome->plan->kernels, [](const Kernel& k) { return k.implementation == "tiles-x6"; });
  EXPECT_FALSE(latency->kept_other && has_tiles);
}

// A tile of ours at 5.0, everything else but the libraries' slow.
std::shared_ptr<KernelCache> times_for_gpu(const Graph& graph, const Target& target, const std::string& path,
                                           double library_ms) {
  const auto specs = admitted_kernels(graph, target);
  auto cache = std::make_shared<KernelCache>(*KernelCache::load(path, "cuda: a device"));
  for (const KernelSpec& spec : *specs) {
    const bool is_library = !is_launched_ahead(spec.kernel);
    const bool is_convolution = spec.kernel.kind == KernelKind::Convolution;
    cache->put(kernel_signature(spec), !is_convolution ? 0.001 : is_library ? library_ms : 0.0050);
  }
  return cache;
}

// What follows a library's kernel gets ready late: as if that were a part of its time, less or more.
TEST(PlanChoice, OnAGpuOtherPlansTakeMoreOrFewerOfTheLibrariesKernels) {
  const TestFolder folder;
  const Graph graph = convolution();
  const Target target{.kind = TargetKind::Cuda, .precision = Precision::Fp16};
  const auto is_own = [&](double library_ms, double bonus_ms) {
    CostSource costs;
    costs.cache = times_for_gpu(graph, target, folder.file("times"), library_ms);
    costs.library_bonus_ms = bonus_ms;
    PlannedGraph planned(graph, target, costs);
    const auto plan = planned.plan();
    EXPECT_TRUE(plan.ok()) << plan.error().message;
    const auto convolved = std::ranges::find((*plan)->kernels, KernelKind::Convolution, &Kernel::kind);
    EXPECT_NE(convolved, (*plan)->kernels.end());
    return is_launched_ahead(*convolved);
  };
  EXPECT_TRUE(is_own(0.0055, 0));
  EXPECT_FALSE(is_own(0.0055, 0.0013));
  EXPECT_FALSE(is_own(0.0045, 0));
  EXPECT_TRUE(is_own(0.0045, -0.0013));
}

TEST(PlanChoice, ChainsAreToldOfByNamesOfKernels) {
  const auto by = [](const char* implementation) {
    Kernel kernel{KernelKind::Convolution};
    kernel.implementation = implementation;
    return kernel;
  };
  for (const char* large : {"wgmma:64x64:1", "wgmma:64x64:8", "wgmma:128x256:1", "tiles:128x64:1"})
    EXPECT_TRUE(fills_multiprocessors(by(large))) << large;
  for (const char* small : {"wgmma:64x32:1", "wgmma:64x32:8", "tiles:64x64:1", "cudnn:1", "gemv:1", ""})
    EXPECT_FALSE(fills_multiprocessors(by(small))) << small;
  for (const char* divided : {"wgmma:64x32:2", "wgmma:128x128:8", "tiles:32x32:4"})
    EXPECT_TRUE(divides_depth(by(divided))) << divided;
  for (const char* whole : {"wgmma:64x32:1", "tiles:64x64:1", "cudnn:1", "gemv:4", "patches:64x32", ""})
    EXPECT_FALSE(divides_depth(by(whole))) << whole;
}

// What plans a convolution is made by: of tiles those of one kind take 4.5 us alone and the others 5.0, all else is
// slow.
class TilesOfTwoKinds {
 public:
  using IsOfKind = bool (*)(const Kernel& kernel);
  TilesOfTwoKinds(int extent, IsOfKind is_faster) : graph_(convolution(extent, 64)), is_faster_(is_faster) {
    const auto specs = admitted_kernels(graph_, target_);
    EXPECT_TRUE(specs.ok());
    auto cache = std::make_shared<KernelCache>(*KernelCache::load(folder_.file("times"), "cuda: a device"));
    std::set<bool> kinds;
    for (const KernelSpec& spec : *specs) {
      const bool is_tile = spec.kernel.kind == KernelKind::Convolution && is_launched_ahead(spec.kernel),
                 is_faster = is_tile && is_faster_(spec.kernel);
      if (is_tile) kinds.insert(is_faster);
      cache->put(kernel_signature(spec), is_faster ? 0.0045 : is_tile ? 0.0050 : 0.1);
    }
    EXPECT_EQ(kinds.size(), 2u) << "both may run";
    costs.cache = std::move(cache);
  }
  // Whether the plan by these costs is of the kind that is faster alone.
  void expect_faster(bool is_expected) {
    PlannedGraph planned(graph_, target_, costs);
    const auto plan = planned.plan();
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const auto convolved = std::ranges::find((*plan)->kernels, KernelKind::Convolution, &Kernel::kind);
    ASSERT_NE(convolved, (*plan)->kernels.end());
    EXPECT_EQ(is_faster_(*convolved), is_expected) << convolved->implementation;
  }
  CostSource costs;

 private:
  const TestFolder folder_;
  const Target target_{.kind = TargetKind::Cuda, .precision = Precision::Fp16};
  const Graph graph_;
  const IsOfKind is_faster_;
};

// A larger tile that is a little faster by itself keeps the next kernel from getting ready.
TEST(PlanChoice, OnAGpuAnotherPlanTakesTilesThatLeaveRoom) {
  TilesOfTwoKinds tiles(56, fills_multiprocessors);
  tiles.expect_faster(true);
  tiles.costs.crowding_ms = 0.0013;
  tiles.expect_faster(false);
}

// Alone, blocks that divide a depth are a little slower than one block for each tile.
TEST(PlanChoice, OnAGpuAnotherPlanDividesDepths) {
  TilesOfTwoKinds tiles(28, [](const Kernel& kernel) { return !divides_depth(kernel); });
  tiles.expect_faster(true);
  tiles.costs.division_bonus_ms = 0.001;
  tiles.expect_faster(false);
}

TEST(PlanChoice, OnePlanIsNotTimedAgainstItself) {
  const TestFolder folder;
  const Graph graph = graph_with_weights("  input x : f32[64]\n  r = Relu(x)\n  output y = r\n");
  const auto outcome = optimize_graph(graph, {}, with_cache(folder.file("times")));
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_TRUE(outcome->has_measured_costs);
  EXPECT_TRUE(outcome->plan_latencies.empty());
}

// The cache's lines but for kernels' times, with so many seconds in place of those that were spent; 0: without these.
std::string without_kernels(const std::string& text, int spent) {
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto words = 1 + std::ranges::count(line, ' ');
    const bool is_of_budget = line.starts_with("plans ") && words == 3, is_of_kernel = words == 2;
    if (is_of_kernel || (is_of_budget && spent == 0)) continue;
    kept += (is_of_budget ? line.substr(0, line.rfind(' ') + 1) + std::to_string(spent) : line) + "\n";
  }
  return kept;
}

// What there is for timing kernels is there once, whatever was timed for it; what a result runs is timed all the same.
TEST(PlanChoice, WhatEarlierRunsLeftIsNotTimed) {
  const TestFolder folder;
  const std::string path = folder.file("times");
  const Graph graph = convolution();
  DriverOptions options = with_cache(path);
  options.times_code = false;
  const auto run = [&] {
    auto outcome = optimize_graph(graph, {}, options);
    EXPECT_TRUE(outcome.ok()) << outcome.error().message;
    return *std::move(outcome);
  };
  const auto says_why = [](const Outcome& outcome) {
    return std::ranges::any_of(
        outcome.notes, [](const std::string& note) { return note.find("earlier runs spent") != std::string::npos; });
  };
  const Outcome first = run(), second = run();
  EXPECT_GT(first.kernels_timed, 0);
  EXPECT_EQ(second.kernels_timed, 0);
  EXPECT_FALSE(says_why(first) || says_why(second));
  const std::string text = read_file(path);
  write_file(path, without_kernels(text, 1000));
  const Outcome spent = run();
  EXPECT_LT(spent.kernels_timed, first.kernels_timed);  // what the result runs
  EXPECT_TRUE(says_why(spent));
  write_file(path, without_kernels(text, 0));
  const Outcome anew = run();
  EXPECT_GT(anew.kernels_timed, 0);
  EXPECT_FALSE(says_why(anew));
}

// Whole plans that the cache knows are neither built nor timed again.
class KnownPlans : public testing::Test {
 protected:
  void SetUp() override { write_reversed_times(convolution(), path_); }

  Outcome optimized(const Graph& graph, const std::vector<RewriteRule>& rules = {}) const {
    return optimized(graph, rules, options_for(rules));
  }

  Outcome optimized_in_rounds(const Graph& graph, int runs) const {
    DriverOptions options = options_for({});
    options.runs = runs;
    return optimized(graph, {}, options);
  }

  // Until no search finds one that has no time.
  void time_kernels(const Graph& graph, const std::vector<RewriteRule>& rules) const {
    DriverOptions options = options_for(rules);
    options.times_code = false;
    for (int run = 0; run < 5 && optimized(graph, rules, options).kernels_timed > 0;) run++;
  }

  // As if the plan by measured costs and the other had taken these milliseconds in two rounds.
  void write_times(int own_ms, int other_ms) const {
    std::string text;
    std::istringstream lines(read_file(path_));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      std::string plans, key, seconds, own;
      if (line.starts_with("plans ") && fields >> plans >> key >> seconds >> own) {
        const std::string a = std::to_string(own_ms), b = std::to_string(other_ms);
        line = plans + " " + key + " " + seconds + " " + a + "," + a + " " + b + "," + b;
      }
      text += line + "\n";
    }
    write_file(path_, text);
  }

  static bool is_built(const Outcome& outcome) {
    return std::ranges::any_of(outcome.phases, [](const Phase& phase) { return phase.name == "building the code"; });
  }

  const TestFolder folder_;
  const std::string path_ = folder_.file("times");

 private:
  DriverOptions options_for(const std::vector<RewriteRule>& rules) const {
    DriverOptions options = with_cache(path_);
    options.check.engine = CheckEngine::Off;
    if (!rules.empty()) options.search = {.max_steps = 20};
    return options;
  }
  static Outcome optimized(const Graph& graph, const std::vector<RewriteRule>& rules, const DriverOptions& options) {
    auto outcome = optimize_graph(graph, rules, options);
    EXPECT_TRUE(outcome.ok()) << (outcome.ok() ? "" : outcome.error().message);
    return outcome.ok() ? *std::move(outcome) : Outcome();
  }
};

TEST_F(KnownPlans, AreNotTimedAgain) {
  const Outcome first = optimized(convolution()), second = optimized(convolution());
  EXPECT_EQ(first.plans_timed, 1);
  EXPECT_TRUE(is_built(first));
  EXPECT_EQ(second.plans_timed, 0);
  EXPECT_FALSE(is_built(second));
  ASSERT_EQ(first.plan_latencies.size(), 1U);
  ASSERT_EQ(second.plan_latencies.size(), 1U);
  const PlanLatency &timed = first.plan_latencies[0], &known = second.plan_latencies[0];
  EXPECT_FALSE(timed.is_cached);
  EXPECT_TRUE(known.is_cached);
  EXPECT_EQ(timed.own_ms, known.own_ms);
  EXPECT_EQ(timed.other_ms, known.other_ms);
  EXPECT_EQ(timed.ratio, known.ratio);
  EXPECT_EQ(print_plan(*first.plan), print_plan(*second.plan));
}

TEST_F(KnownPlans, AreChosenByWhatTheCacheSaysOfThem) {
  const CostSource analytic;
  PlannedGraph by_analytic(convolution(), Target{}, analytic);
  optimized(convolution());
  for (const int own_ms : {1, 3}) {
    write_times(own_ms, 2);
    const Outcome outcome = optimized(convolution());
    ASSERT_EQ(outcome.plan_latencies.size(), 1U);
    EXPECT_EQ(outcome.plan_latencies[0].own_ms, own_ms);
    EXPECT_EQ(outcome.plan_latencies[0].kept_other, own_ms == 3);
    EXPECT_EQ(has_same_kernels(*outcome.plan, **by_analytic.plan()), own_ms == 3);
  }
}

TEST_F(KnownPlans, OfAnotherShapeAreOthers) {
  optimized(convolution());
  write_reversed_times(convolution(14), path_);
  const Outcome other = optimized(convolution(14));
  EXPECT_EQ(other.plans_timed, 1);
  EXPECT_TRUE(is_built(other));
  EXPECT_EQ(optimized(convolution()).plans_timed, 0);
}

TEST_F(KnownPlans, AreTimedAnewInOtherNumbersOfRounds) {
  EXPECT_GT(optimized_in_rounds(convolution(), 1).plans_timed, 0);
  EXPECT_GT(optimized_in_rounds(convolution(), 6).plans_timed, 0);
  EXPECT_EQ(optimized_in_rounds(convolution(), 1).plans_timed, 0);
}

TEST_F(KnownPlans, OfTheOriginalAndTheResultDecideAsBefore) {
  auto database = load_rules(GOPT_SHIPPED_RULES "/core.rules");
  ASSERT_TRUE(database.ok());
  const Graph graph = graph_with_weights(R"(  input x : f32[64,256]
  input w : f32[256,256]
  a = Relu(x)
  b = Relu(a)
  c = MatMul(b, w)
  d = Transpose(c) {perm=[1,0]}
  e = Transpose(d) {perm=[1,0]}
  output y = e
)");
  time_kernels(graph, database->rules);
  const Outcome first = optimized(graph, database->rules), second = optimized(graph, database->rules);
  ASSERT_TRUE(first.latency) << first.latency_note;
  ASSERT_TRUE(second.latency) << second.latency_note;
  EXPECT_FALSE(first.latency->is_cached);
  EXPECT_TRUE(second.latency->is_cached);
  EXPECT_EQ(second.plans_timed, 0);
  EXPECT_EQ(first.latency->before_ms, second.latency->before_ms);
  EXPECT_EQ(first.latency->after_ms, second.latency->after_ms);
  EXPECT_EQ(first.latency_note, second.latency_note);
  EXPECT_EQ(print_plan(*first.plan), print_plan(*second.plan));
}

TEST_F(KnownPlans, AreBuiltToBeChecked) {
  DriverOptions options = with_cache(path_);
  ASSERT_TRUE(optimize_graph(convolution(), {}, options).ok());
  const auto outcome = optimize_graph(convolution(), {}, options);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->plans_timed, 0);
  EXPECT_TRUE(is_built(*outcome));
  ASSERT_TRUE(outcome->code_check);
  EXPECT_TRUE(outcome->code_check->passed) << outcome->code_check->why_not;
}

TEST_F(KnownPlans, WhatWasInterruptedOrFailedIsNotKept) {
  std::atomic<bool> stop{true};
  DriverOptions options;
  options.search.stop = &stop;
  PhaseClock clock;
  const CostSource costs;
  PlannedGraph graph(convolution(), Target{}, costs);
  PlanTiming timing(options, clock);
  timing.keep_in(std::make_shared<KernelCache>(*KernelCache::load(path_, "here")));
  const auto asked = [&](const Result<std::vector<std::vector<double>>>& answer) {
    return timing.in_turns({&graph}, "turns", [&] { return answer; });
  };
  const std::vector<std::vector<double>> rounds = {{1, 2}};
  EXPECT_FALSE(asked(Error{"failed"}).ok());
  EXPECT_FALSE(asked(rounds)->is_known);
  EXPECT_FALSE(asked(rounds)->is_known);
  stop = false;
  EXPECT_FALSE(asked(Error{"failed"}).ok());
  EXPECT_FALSE(asked(rounds)->is_known);
  EXPECT_TRUE(asked(Error{"failed"})->is_known);
  EXPECT_EQ(timing.timed(), 3);
}

}  // namespace
}  // namespace gopt::driver
