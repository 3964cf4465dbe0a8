// Costs of whole graphs: what the search relies on.
#include <gtest/gtest.h>

#include <chrono>

#include "gopt/optimizer.h"
#include "gopt/text.h"

namespace gopt {
namespace {

Cost cost_of(const std::string& text) {
  auto graph = parse_graph("graph g\n" + text + "\nend");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  if (!graph) return {};
  return plan_cost_oracle({TargetKind::Cpu, 1}, analytic_kernel_costs({}))->estimate(*graph);
}

TEST(PlanCost, IsTheCostOfKernelsNotOfOperators) {
  const Cost one = cost_of("input x : f32[1000,1000]\na = Exp(x)\noutput y = a");
  const Cost three = cost_of("input x : f32[1000,1000]\na = Exp(x)\nb = Neg(a)\nc = Relu(b)\noutput y = c");
  EXPECT_EQ(one.kernels, 1);
  EXPECT_EQ(three.kernels, 1);
  EXPECT_LT(three.time_ms, 1.5 * one.time_ms);
}

TEST(PlanCost, SymbolicExtentsHaveACost) {
  const Cost cost = cost_of("input x : f32[batch,length,32]\na = Softmax(x) {axis=-1}\noutput y = a");
  EXPECT_GT(cost.time_ms, 0);
  EXPECT_EQ(cost.kernels, 1);
}

TEST(PlanCost, OpaqueNodesCostNothing) {
  GraphBuilder builder;
  const Value x = builder.input("x", {ElementType::Float32, Shape{Index(4)}});
  const NodePtr opaque = builder.opaque(std::make_shared<OpaqueOp>(OpaqueOp{"custom", "Frobnicate", "", {}}), {x},
                                        {{ElementType::Float32, Shape{Index(4)}}});
  builder.output("y", *builder.apply(OpKind::Exp, {{opaque, 0}}));
  const Cost cost = plan_cost_oracle({TargetKind::Cpu, 1}, analytic_kernel_costs({}))->estimate(builder.build());
  EXPECT_EQ(cost.kernels, 1);
}

TEST(PlanCost, IsPure) {
  const std::string text = "input x : f32[8,16]\na = Softmax(x) {axis=-1}\nb = Exp(a)\noutput y = b";
  EXPECT_EQ(cost_of(text).time_ms, cost_of(text).time_ms);
}

// A graph of a thousand nodes must be costed thousands of times in a search.
TEST(PlanCost, IsFast) {
  std::string text = "input x : f32[64,64]\na0 = Exp(x)\n";
  for (int i = 1; i < 1000; i++)
    text += "a" + std::to_string(i) + (i % 3 ? " = Neg(a" : " = MatMul(x, a") + std::to_string(i - 1) + ")\n";
  auto graph = parse_graph("graph g\n" + text + "output y = a999\nend");
  ASSERT_TRUE(graph.ok());
  auto oracle = plan_cost_oracle({TargetKind::Cpu, 1}, analytic_kernel_costs({}));
  double best_ms = 1e9;
  for (int i = 0; i < 5; i++) {
    const auto start = std::chrono::steady_clock::now();
    oracle->estimate(*graph);
    best_ms =
        std::min(best_ms, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  EXPECT_LT(best_ms, 100) << "a bound for busy and sanitized builds; a few milliseconds are usual";
}

}  // namespace
}  // namespace gopt
