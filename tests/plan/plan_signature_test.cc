// What is the same plan to who kept its time, and what is another.
#include <gtest/gtest.h>

#include <functional>

#include "../support/graph_with_weights.h"
#include "gopt/kernel_costs.h"
#include "gopt/kernel_spec.h"

namespace gopt {
namespace {

Plan planned(const Graph& graph, const Target& target = {}) {
  auto costs = analytic_kernel_costs({});
  auto plan = make_plan(graph, target, *costs);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return *plan;
}

// The weights of the product are large: 80 kB.
Graph network(const std::string& rows = "9", const std::string& activation = "Relu", double weight = 0.5) {
  return graph_with_weights("  input x : f32[" + rows + R"(,200]
  input w0 : f32[200,100]
  input w1 : f32[100]
  a = MatMul(x, w0)
  b = Add(a, w1)
  c = )" + activation + R"((b)
  d = Softmax(c)
  output y = d
)",
                            [weight] { return weight; });
}

TEST(PlanSignature, IsTheSameWhereverItsWeightsLieAndWhateverItIsEstimatedToTake) {
  const Graph one = network(), two = network();
  EXPECT_NE(one.hash(), two.hash());
  Plan plan = planned(one);
  EXPECT_EQ(plan_signature(plan), plan_signature(planned(two)));
  for (Kernel& kernel : plan.kernels) kernel.estimated_ms *= 2;
  EXPECT_EQ(plan_signature(plan), plan_signature(planned(two)));
}

TEST(PlanSignature, DiffersBetweenGraphsAndTargets) {
  const std::string own = plan_signature(planned(network()));
  EXPECT_NE(own, plan_signature(planned(network("10"))));
  EXPECT_NE(own, plan_signature(planned(network("9", "Tanh"))));
  EXPECT_NE(own, plan_signature(planned(network("9", "Relu", 0.25))));  // the bias is small
  EXPECT_NE(own, plan_signature(planned(network(), {.threads = 2})));
  EXPECT_NE(own, plan_signature(planned(network(), {.kind = TargetKind::Cuda})));
  EXPECT_NE(own, plan_signature(planned(network(), {.without = {kDependentLaunch}})));
}

TEST(PlanSignature, DiffersBetweenPlansOfOneGraph) {
  const Plan own = planned(network());
  ASSERT_GE(own.kernels.size(), 2U);
  const std::vector<std::function<void(Plan&)>> changes = {
      [](Plan& plan) { std::swap(plan.kernels[0], plan.kernels[1]); },
      [](Plan& plan) { plan.kernels.pop_back(); },
      [](Plan& plan) { plan.kernels[0].implementation += "x"; },
      [](Plan& plan) { plan.kernels[1].stream = StreamId{1}; },
      [](Plan& plan) { plan.kernels[1].input_buffers[0] = plan.kernels[0].input_buffers[0]; },
      [](Plan& plan) { plan.buffers[0].layout = Layout::channels_last(); },
      [](Plan& plan) { plan.buffers[0].element = ElementType::Float16; },
      [](Plan& plan) { plan.buffers[0].offset += 64; },
      [](Plan& plan) { plan.buffers[0].is_view = !plan.buffers[0].is_view; },
  };
  for (size_t k = 0; k < changes.size(); k++) {
    Plan other = own;
    changes[k](other);
    EXPECT_NE(plan_signature(other), plan_signature(own)) << k;
  }
}

}  // namespace
}  // namespace gopt
