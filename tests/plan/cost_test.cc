// Costs of whole graphs: what the search relies on.
#include <gtest/gtest.h>

#include "gopt/kernel_costs.h"
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

Cost sum_of(const std::string& text) {
  auto graph = parse_graph("graph g\n" + text + "\nend");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  if (!graph) return {};
  return sum_cost_oracle({TargetKind::Cpu, 1}, analytic_kernel_costs({}))->estimate(*graph);
}

TEST(SumCost, IsTheCostOfOperatorsNotOfKernels) {
  const std::string input = "input x : f32[1000,1000]\n";
  const Cost a = sum_of(input + "a = Exp(x)\noutput y = a"), b = sum_of(input + "b = Neg(x)\noutput y = b");
  const Cost both = sum_of(input + "a = Exp(x)\nb = Neg(a)\noutput y = b");
  EXPECT_EQ(both.kernels, 2);
  EXPECT_DOUBLE_EQ(both.time_ms, a.time_ms + b.time_ms);
  EXPECT_DOUBLE_EQ(a.time_ms, cost_of(input + "a = Exp(x)\noutput y = a").time_ms);
}

TEST(KernelWork, IsOperationsAndBytesOfEachKernel) {
  auto graph = parse_graph(
      "graph g\ninput x : f32[4,6]\ninput w : f32[6,8]\na = Softmax(x) {axis=-1}\nb = MatMul(a, w)\noutput y = b\nend");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  auto costs = analytic_kernel_costs({});
  const auto plan = make_plan(*graph, {TargetKind::Cpu, 1}, *costs);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  double operations = 0, bytes = 0;
  for (const Kernel& kernel : plan->kernels) {
    const KernelWork work = kernel_work(*plan, kernel);
    operations += work.operations;
    bytes += work.bytes;
    if (kernel.kind != KernelKind::MatrixProduct) continue;
    EXPECT_EQ(work.operations, 2.0 * 4 * 6 * 8);
    EXPECT_EQ(work.bytes, 4.0 * (4 * 6 + 6 * 8 + 4 * 8));
  }
  const Cost whole = plan_cost_oracle({TargetKind::Cpu, 1}, analytic_kernel_costs({}))->estimate(*graph);
  EXPECT_EQ(operations, whole.operations);
  EXPECT_EQ(bytes, whole.bytes);
}

TEST(RooflineOf, IsTheProcessorsWhereThatIsTheTarget) {
  const Roofline processor{.gflops = 7, .gbps = 3, .launch_us = 1};
  EXPECT_EQ(roofline_of({TargetKind::Cpu, 1}, processor).gflops, 7);
  EXPECT_DOUBLE_EQ(roofline_of({TargetKind::Cpu, 3}, processor).gflops, 7 * (1 + 2 * processor.next_thread));
  EXPECT_GT(roofline_of({TargetKind::Cuda, 1}, processor).gflops, 1000);
}

// What ties, ties on a processor of any speed: a search would else decide by how sums happened to be rounded.
TEST(PlanCost, DoesNotDependOnTheOrderOfKernels) {
  const std::string parts[] = {"a = Exp(x)\n", "b = Softmax(x) {axis=1}\n", "c = MatMul(x, x)\n",
                               "d = ReduceMax(x) {axes=[0]}\n", "e = Transpose(x) {perm=[1,0]}\n"};
  std::string forwards, backwards;
  for (const std::string& part : parts) {
    forwards += part;
    backwards = part + backwards;
  }
  const std::string head = "graph g\ninput x : f32[300,300]\n";
  auto first =
      parse_graph(head + forwards + "output a = a\noutput b = b\noutput c = c\noutput d = d\noutput e = e\nend");
  auto second =
      parse_graph(head + backwards + "output e = e\noutput d = d\noutput c = c\noutput b = b\noutput a = a\nend");
  ASSERT_TRUE(first.ok() && second.ok());
  for (int speed = 1; speed <= 40; speed++) {
    const Roofline roofline{.gflops = 10.3 * speed, .gbps = 1.03 * speed, .launch_us = 20.6 / speed};
    const auto plans = plan_cost_oracle({TargetKind::Cpu, 1}, analytic_kernel_costs(roofline));
    EXPECT_EQ(plans->estimate(*first).time_ms, plans->estimate(*second).time_ms) << speed;
    const auto runtime = runtime_cost_oracle(roofline);
    EXPECT_EQ(runtime->estimate(*first).time_ms, runtime->estimate(*second).time_ms) << speed;
  }
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

// A graph of a thousand nodes must be costed thousands of times in a search: what is asked for grows with the nodes.
class CountedCosts : public KernelCosts {
 public:
  explicit CountedCosts(long& count) : count_(count) {}
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    count_++;
    return analytic_->time_ms(plan, kernel);
  }

 private:
  long& count_;
  std::unique_ptr<KernelCosts> analytic_ = analytic_kernel_costs({});
};
long kernels_asked_for(int nodes) {
  std::string text = "input x : f32[64,64]\na0 = Exp(x)\n";
  for (int i = 1; i < nodes; i++)
    text += "a" + std::to_string(i) + (i % 3 ? " = Neg(a" : " = MatMul(x, a") + std::to_string(i - 1) + ")\n";
  auto graph = parse_graph("graph g\n" + text + "output y = a" + std::to_string(nodes - 1) + "\nend");
  EXPECT_TRUE(graph.ok());
  long count = 0;
  if (graph) plan_cost_oracle({TargetKind::Cpu, 1}, std::make_unique<CountedCosts>(count))->estimate(*graph);
  return count;
}
TEST(PlanCost, AsksForAFewKernelsANode) {
  const long some = kernels_asked_for(250), more = kernels_asked_for(1000);
  EXPECT_GT(some, 0);
  EXPECT_LE(more, 5 * some);
  EXPECT_LE(more, 10 * 1000);
}

}  // namespace
}  // namespace gopt
