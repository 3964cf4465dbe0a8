// Kernels of bf16x3 that compute in floats after all.
#include "../../driver/lost_digits.h"

#include <gtest/gtest.h>

#include "../support/graph_with_weights.h"
#include "gopt/plan.h"

namespace gopt::driver {
namespace {

// Sums of two bfloat16 take half as long as anything else, and larger results longer.
class CostsOfTwoTerms : public KernelCosts {
 public:
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    double elements = 0;
    for (const BufferId id : kernel.output_buffers)
      elements += static_cast<double>(element_count(plan.buffer(id).dims));
    return elements * (is_of_two_terms(kernel) ? 1 : 2);
  }
};

std::vector<int64_t> columns_of_two_terms(const Plan& plan) {
  std::vector<int64_t> columns;
  for (const Kernel& kernel : plan.kernels)
    if (is_of_two_terms(kernel)) columns.push_back(plan.buffer(kernel.output_buffers[0]).dims.back());
  return columns;
}

TEST(LostDigits, ThoseThatGainLeastComputeInFloats) {
  const Graph graph = graph_with_weights(
      "input x : f32[20,30]\ninput w : f32[30,50]\ninput w2 : f32[50,90]\ninput w3 : f32[90,70]\n"
      "a = MatMul(x, w)\nb = Relu(a)\nc = MatMul(b, w2)\nd = Relu(c)\ne = MatMul(d, w3)\noutput y = e");
  CostsOfTwoTerms costs;
  Target target{.precision = Precision::Bf16x3};
  const auto plan = make_plan(graph, target, costs);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ASSERT_EQ(columns_of_two_terms(*plan), (std::vector<int64_t>{50, 90, 70}));
  for (const auto& [share, left] : std::vector<std::pair<double, std::vector<int64_t>>>{
           {1, {50, 90, 70}}, {0.7, {90, 70}}, {0.4, {90}}, {0.3, {}}, {0, {}}}) {
    target.in_fp32 = kernels_in_floats(*plan, share);
    const auto other = make_plan(graph, target, costs);
    ASSERT_TRUE(other.ok()) << other.error().message;
    EXPECT_EQ(columns_of_two_terms(*other), left) << share;
  }
}

}  // namespace
}  // namespace gopt::driver
