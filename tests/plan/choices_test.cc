// What was chosen for a kernel is asked for once, as long as it is of the same target and nothing more is known.
#include "../../planner/choices.h"

#include <gtest/gtest.h>

#include "../support/graph_with_weights.h"

namespace gopt {
namespace {

const char* const kTwice =
    "input x : f32[1,16,20,20]\ninput w1 : f32[16,16,3,3]\ninput w2 : f32[16,16,3,3]\na = Conv(x, w1) "
    "{pads=[1,1,1,1]}\nb "
    "= Conv(a, w2) {pads=[1,1,1,1]}\noutput y = b";

// Of each kernel the same time, but of one way to run it; how often it was asked.
class Asked : public KernelCosts, public planner::Choices {
 public:
  double time_ms(const Plan&, const Kernel& kernel) override {
    all++;
    return kernel.implementation == slow ? 2 : 1;
  }
  size_t version() const override { return known; }

  std::string slow;
  size_t known = 0;
  int all = 0;
};

std::vector<std::string> implementations(const Plan& plan) {
  std::vector<std::string> names;
  for (const Kernel& kernel : plan.kernels) names.push_back(kernel.implementation);
  return names;
}

TEST(Choices, AreMadeOnceForEachKernel) {
  Asked costs;
  const Graph graph = graph_with_weights(kTwice);
  const Target target{.kind = TargetKind::Cuda};
  const auto first = make_plan(graph, target, costs);
  ASSERT_TRUE(first.ok());
  const int asked = costs.all;
  ASSERT_GT(asked, 0);
  const auto second = make_plan(graph, target, costs);
  ASSERT_TRUE(second.ok());
  EXPECT_LT(costs.all - asked, asked / 4);  // layouts are chosen without
  EXPECT_EQ(implementations(*second), implementations(*first));
}

TEST(Choices, AreMadeAnewForAnotherTargetAndWhereMoreIsKnown) {
  Asked costs;
  const Graph graph = graph_with_weights(kTwice);
  ASSERT_TRUE(make_plan(graph, {.kind = TargetKind::Cuda}, costs).ok());
  int asked = costs.all;
  const auto without = make_plan(graph, {.kind = TargetKind::Cuda, .without = {"kernel:tiles", "kernel:wgmma"}}, costs);
  ASSERT_TRUE(without.ok());
  EXPECT_GT(costs.all, asked);
  for (const std::string& name : implementations(*without)) EXPECT_FALSE(name.starts_with("tiles")) << name;

  asked = costs.all;
  const auto before = make_plan(graph, {.kind = TargetKind::Cuda}, costs);
  ASSERT_TRUE(before.ok());
  for (const Kernel& kernel : before->kernels)
    if (kernel.kind == KernelKind::Convolution) costs.slow = kernel.implementation;
  const auto still = make_plan(graph, {.kind = TargetKind::Cuda}, costs);
  costs.known = 1;
  const auto after = make_plan(graph, {.kind = TargetKind::Cuda}, costs);
  ASSERT_TRUE(still.ok() && after.ok());
  EXPECT_EQ(implementations(*still), implementations(*before));
  EXPECT_NE(implementations(*after), implementations(*before));
}

TEST(Choices, OfOpenSizesAreNotKept) {
  Asked costs;
  const Graph graph = graph_with_weights(kTwice);
  const auto plan = make_plan(graph, {.kind = TargetKind::Cuda}, costs);
  ASSERT_TRUE(plan.ok());
  Plan open = *plan;
  open.target.open.push_back({});
  EXPECT_NE(planner::text_for_choice(*plan, plan->kernels[0]), "");
  EXPECT_EQ(planner::text_for_choice(open, plan->kernels[0]), "");
}

}  // namespace
}  // namespace gopt
