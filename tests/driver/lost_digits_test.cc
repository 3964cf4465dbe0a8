// Kernels of bf16x3 that compute in floats after all.
#include "../../driver/lost_digits.h"

#include <gtest/gtest.h>

#include <optional>

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

TEST(LostDigits, ThoseThatTakeLeastComputeInFloats) {
  const Graph graph = graph_with_weights(
      "input x : f32[20,30]\ninput w : f32[30,50]\ninput w2 : f32[50,90]\ninput w3 : f32[90,70]\n"
      "a = MatMul(x, w)\nb = Relu(a)\nc = MatMul(b, w2)\nd = Relu(c)\ne = MatMul(d, w3)\noutput y = e");
  CostsOfTwoTerms costs;
  std::optional<Plan> plan;
  int plans = 0;
  const auto plan_with = [&](const std::set<ValueKey>& in_fp32) -> Result<const Plan*> {
    Target target{.precision = Precision::Bf16x3};
    target.in_fp32 = in_fp32;
    plans++;
    GOPT_ASSIGN_OR_RETURN(plan, make_plan(graph, target, costs));
    return &*plan;
  };
  const std::vector<int64_t> all = {50, 90, 70};
  for (const auto& [most, left] :
       std::vector<std::pair<size_t, std::vector<int64_t>>>{{5, all}, {3, all}, {2, {90, 70}}, {1, {90}}, {0, {}}}) {
    plans = 0;
    const auto count = leave_two_terms(plan_with, most);
    ASSERT_TRUE(count.ok()) << count.error().message;
    EXPECT_EQ(*count, all.size() - left.size());
    EXPECT_EQ(columns_of_two_terms(*plan), left) << most;
    EXPECT_EQ(kernels_of_two_terms(*plan), left.size());
    EXPECT_EQ(plans, left.size() == all.size() ? 1 : 2);
  }
}

}  // namespace
}  // namespace gopt::driver
