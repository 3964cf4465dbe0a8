// Kernels apart from their plans.
#include "gopt/kernel_spec.h"

#include <gtest/gtest.h>

#include <set>

#include "../support/graph_with_weights.h"
#include "gopt/kernel_costs.h"

namespace gopt {
namespace {

// Convolutions with a residual and a concatenation in place, a product, loops of our own.
Graph mixed_graph() {
  return graph_with_weights(R"(  input x : f32[1,32,9,9]
  input v : f32[64,10]
  input w : f32[32,32,1,1]
  a = Conv(x, w)
  b = Relu(a)
  c = Conv(b, w)
  d = Add(c, b)
  e = Conv(d, w)
  f = Concat(d, e) {axis=1}
  g = GlobalAveragePool(f)
  h = Flatten(g)
  i = MatMul(h, v)
  j = Softmax(i)
  output y = j
)");
}

TEST(KernelSpec, HasTheSignatureThatItHadInItsPlan) {
  auto costs = analytic_kernel_costs({});
  const auto plan = make_plan(mixed_graph(), {TargetKind::Cpu, 2}, *costs);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  for (const Kernel& kernel : plan->kernels)
    EXPECT_EQ(kernel_signature(spec_of(*plan, kernel)), kernel_signature(*plan, kernel)) << kernel.name;
}

TEST(KernelSpec, ThoseAdmittedAreAllThatAPlanChoosesFrom) {
  const Target target{TargetKind::Cpu, 2};
  const auto admitted = admitted_kernels(mixed_graph(), target);
  ASSERT_TRUE(admitted.ok()) << admitted.error().message;
  std::set<std::string> signatures;
  for (const KernelSpec& spec : *admitted) EXPECT_TRUE(signatures.insert(kernel_signature(spec)).second);
  auto costs = analytic_kernel_costs({});
  const auto plan = make_plan(mixed_graph(), target, *costs);
  ASSERT_TRUE(plan.ok());
  for (const Kernel& kernel : plan->kernels)
    EXPECT_TRUE(signatures.contains(kernel_signature(*plan, kernel))) << print_plan(*plan) << kernel.name;
  EXPECT_GT(signatures.size(), plan->kernels.size());
}

TEST(KernelSpec, ATimingPlanHoldsEachKernelApart) {
  const auto admitted = admitted_kernels(mixed_graph(), {TargetKind::Cpu, 1});
  ASSERT_TRUE(admitted.ok());
  const Plan plan = timing_plan(*admitted);
  EXPECT_TRUE(plan.times_kernels);
  ASSERT_EQ(plan.kernels.size(), admitted->size());
  std::set<std::string> names;
  for (size_t k = 0; k < plan.kernels.size(); k++) {
    const Kernel& kernel = plan.kernels[k];
    EXPECT_TRUE(names.insert(kernel.name).second);
    std::vector<std::pair<int64_t, int64_t>> places;  // of buffers in the arena, which may not overlap in a kernel
    std::set<BufferId> buffers(kernel.input_buffers.begin(), kernel.input_buffers.end());
    buffers.insert(kernel.output_buffers.begin(), kernel.output_buffers.end());
    for (BufferId id : buffers) {
      const Buffer& buffer = plan.buffer(id);
      if (buffer.is_view || buffer.place != BufferPlace::Arena) continue;
      for (const auto& [begin, end] : places)
        EXPECT_TRUE(buffer.offset >= end || buffer.offset + buffer.size_bytes <= begin);
      places.emplace_back(buffer.offset, buffer.offset + buffer.size_bytes);
      EXPECT_LE(buffer.offset + buffer.size_bytes, plan.arena_bytes);
    }
    EXPECT_EQ(kernel_signature(plan, kernel), kernel_signature((*admitted)[k]));
  }
}

}  // namespace
}  // namespace gopt
