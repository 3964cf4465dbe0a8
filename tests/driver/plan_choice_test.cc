// Which of two plans is emitted is decided by running them.
#include <gtest/gtest.h>

#include <algorithm>

#include "../../driver/machine.h"
#include "../../driver/measured_costs.h"
#include "../../driver/planned_graph.h"
#include "../../driver/time_in_turns.h"
#include "../support/graph_with_weights.h"
#include "../support/test_folder.h"
#include "gopt/driver.h"
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

Graph convolution() {
  return graph_with_weights(R"(  input x : f32[1,64,28,28]
  input w : f32[64,64,3,3]
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

TEST(PlanChoice, OnePlanIsNotTimedAgainstItself) {
  const TestFolder folder;
  const Graph graph = graph_with_weights("  input x : f32[64]\n  r = Relu(x)\n  output y = r\n");
  const auto outcome = optimize_graph(graph, {}, with_cache(folder.file("times")));
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_TRUE(outcome->has_measured_costs);
  EXPECT_TRUE(outcome->plan_latencies.empty());
}

}  // namespace
}  // namespace gopt::driver
