// Kernels timed one by one.
#include "../../driver/measured_costs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "../support/graph_with_weights.h"

namespace gopt::driver {
namespace {

std::vector<KernelSpec> some_kernels() {
  const Graph graph = graph_with_weights(R"(  input x : f32[1,32,9,9]
  input ids : i64[5]
  input v : f32[64,10]
  input w : f32[32,32,3,3]
  a = Conv(x, w) {pads=[1,1,1,1]}
  b = Relu(a)
  p = MaxPool(b) {kernel_shape=[3,3]}
  g = Gather(v, ids)
  s = Softmax(g)
  output y = p
  output z = s
)");
  auto specs = admitted_kernels(graph, {TargetKind::Cpu, 2});
  EXPECT_TRUE(specs.ok()) << (specs.ok() ? "" : specs.error().message);
  return *specs;
}

class MeasuredCosts : public testing::Test {
 protected:
  void TearDown() override { std::remove(path_.c_str()); }
  KernelCache load() const {
    auto cache = KernelCache::load(path_, "test");
    EXPECT_TRUE(cache.ok()) << (cache.ok() ? "" : cache.error().message);
    return *cache;
  }
  const std::string path_ = testing::TempDir() + "/kernel_times_" + std::to_string(getpid());
};

TEST_F(MeasuredCosts, EachKernelIsTimedOnce) {
  const std::vector<KernelSpec> specs = some_kernels();
  KernelCache cache = load();
  const auto timed = measure_kernels(specs, cache, {.threads = 2, .budget_seconds = 600});
  ASSERT_TRUE(timed.ok()) << timed.error().message;
  EXPECT_EQ(*timed, static_cast<int>(specs.size()));
  for (const KernelSpec& spec : specs) {
    const auto ms = cache.find(kernel_signature(spec));
    ASSERT_TRUE(ms) << spec.kernel.name;
    EXPECT_TRUE(*ms > 0) << spec.kernel.name;
    EXPECT_TRUE(std::isinf(*ms) || *ms < 1000) << spec.kernel.name;
  }
  const auto again = measure_kernels(specs, cache, {.threads = 2, .budget_seconds = 600});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, 0);
  KernelCache reloaded = load();
  EXPECT_EQ(reloaded.size(), cache.size());
}

TEST_F(MeasuredCosts, StopsWhenAsked) {
  const std::atomic<bool> stop{true};
  KernelCache cache = load();
  const auto timed = measure_kernels(some_kernels(), cache, {.threads = 1, .stop = &stop});
  ASSERT_TRUE(timed.ok());
  EXPECT_EQ(*timed, 0);
}

TEST_F(MeasuredCosts, WhatTheLibraryRefusesIsKeptAsSuch) {
  KernelCache cache = load();
  cache.put("refused", std::numeric_limits<double>::infinity());
  cache.put("known", 0.25);
  ASSERT_TRUE(cache.save().ok());
  const KernelCache reloaded = load();
  ASSERT_TRUE(reloaded.find("refused"));
  EXPECT_TRUE(std::isinf(*reloaded.find("refused")));
  EXPECT_EQ(*reloaded.find("known"), 0.25);
}

}  // namespace
}  // namespace gopt::driver
