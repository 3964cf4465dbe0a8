// A plan for CUDA by the kernel times of a GPU that is not here: what a cache that travelled decides.
#include <gtest/gtest.h>

#include "../support/graph_with_weights.h"
#include "gopt/driver.h"
#include "gopt/kernel_costs.h"
#include "test_folder.h"

namespace gopt {
namespace {

const Target kCuda{TargetKind::Cuda, 1};

Graph two_convolutions(int channels) {
  const std::string c = std::to_string(channels);
  return graph_with_weights("  input x : f32[1," + c + ",9,9]\n  input w : f32[" + c + "," + c +
                            ",3,3]\n  a = Conv(x, w) {pads=[1,1,1,1]}\n  b = Relu(a)\n"
                            "  c = Conv(b, w)\n  output y = c\n");
}

class GpuCosts : public testing::Test {
 protected:
  // Milliseconds of each kernel that a plan of the graph may choose, by what it is run by: of plain tensors. All
  // others, conversions too, take 100.
  void write_times(const Graph& graph, const std::map<std::string, double>& ms_of_implementation) const {
    auto loaded = KernelCache::load(path_, "cuda: Made-up GPU; CUDA 99.0; code 0");
    ASSERT_TRUE(loaded.ok());
    KernelCache cache = *loaded;
    const auto specs = admitted_kernels(graph, kCuda);
    ASSERT_TRUE(specs.ok()) << specs.error().message;
    for (const KernelSpec& spec : *specs) {
      const Layout& layout = spec.buffers[static_cast<uint32_t>(spec.kernel.output_buffers[0])].layout;
      const bool is_plain = spec.kernel.kind == KernelKind::Convolution && layout.is_plain();
      const auto own = ms_of_implementation.find(spec.kernel.implementation);
      const bool is_meant = is_plain && own != ms_of_implementation.end();
      cache.put(kernel_signature(spec), is_meant ? own->second : 100);
    }
    ASSERT_TRUE(cache.save().ok());
  }
  Outcome planned(const Graph& graph) const {
    DriverOptions options;
    options.target = kCuda;
    options.measured_costs = options.wants_code = true;
    options.times_code = false;
    options.cache = path_;
    options.gpu = "made-up";  // also where there is a GPU
    const auto outcome = optimize_graph(graph, {}, options);
    EXPECT_TRUE(outcome.ok()) << (outcome.ok() ? "" : outcome.error().message);
    return outcome.ok() ? *outcome : Outcome();
  }
  const TestFolder folder_;
  const std::string path_ = folder_.file("times");
};

TEST_F(GpuCosts, DecideThePlanAndItsEstimate) {
  const Graph graph = two_convolutions(8);
  for (const auto& [chosen, times] : std::map<std::string, std::map<std::string, double>>{
           {"cudnn:1", {{"cudnn:1", 3}, {"unfolded", 4}}}, {"unfolded", {{"cudnn:1", 7}, {"unfolded", 5}}}}) {
    write_times(graph, times);
    const Outcome outcome = planned(graph);
    EXPECT_TRUE(outcome.has_measured_costs);
    EXPECT_EQ(outcome.machine.substr(0, 17), "cuda: Made-up GPU");
    EXPECT_EQ(outcome.kernels_timed, 0);
    ASSERT_TRUE(outcome.plan);
    EXPECT_EQ(outcome.plan->kernels.size(), 2U);
    for (const Kernel& kernel : outcome.plan->kernels) EXPECT_EQ(kernel.implementation, chosen);
    EXPECT_DOUBLE_EQ(outcome.result.after.time_ms, 2 * times.at(chosen));
    ASSERT_EQ(outcome.notes.size(), 1U);
    EXPECT_NE(outcome.notes[0].find("another version"), std::string::npos) << outcome.notes[0];
  }
}

TEST_F(GpuCosts, OfAnotherModelAreNotUsed) {
  write_times(two_convolutions(8), {{"cudnn:1", 3}, {"unfolded", 4}});
  const Outcome outcome = planned(two_convolutions(16));
  EXPECT_FALSE(outcome.has_measured_costs);
  EXPECT_LT(outcome.result.after.time_ms, 1);
  ASSERT_EQ(outcome.notes.size(), 2U);
  EXPECT_NE(outcome.notes[1].find("no times of any kernel of this model"), std::string::npos) << outcome.notes[1];
  ASSERT_TRUE(outcome.plan);
  for (const Kernel& kernel : outcome.plan->kernels) EXPECT_EQ(kernel.implementation, "fastest");
}

TEST_F(GpuCosts, ThatAreMissingAreEstimatedByThoseThatThereAre) {
  const Graph known = two_convolutions(8);
  write_times(known, {{"cudnn:1", 3}, {"unfolded", 4}});
  const Graph more = graph_with_weights(
      "  input x : f32[1,8,9,9]\n  input w : f32[8,8,3,3]\n  input wide : f32[16,8,1,1]\n  a = Conv(x, w) "
      "{pads=[1,1,1,1]}\n  b = Relu(a)\n  c = Conv(b, wide)\n  output y = c\n");
  const Outcome outcome = planned(more);
  EXPECT_TRUE(outcome.has_measured_costs);
  ASSERT_TRUE(outcome.plan);
  EXPECT_EQ(outcome.plan->kernels[0].implementation, "cudnn:1");
  // Cautiously: as slow beside its analytic time as what was measured.
  EXPECT_GT(outcome.plan->kernels[1].estimated_ms, 1);
  ASSERT_EQ(outcome.notes.size(), 2U);
  EXPECT_NE(outcome.notes[1].find("they are estimated"), std::string::npos) << outcome.notes[1];
}

}  // namespace
}  // namespace gopt
