// Opaque nodes in plans that call functions for them.
#include <gtest/gtest.h>

#include "gopt/kernel_costs.h"
#include "gopt/kernel_spec.h"
#include "gopt/plan.h"

namespace gopt {
namespace {

// What a function takes and gives lies plain, and what surrounds it is fused as it would be around any kernel.
TEST(External, AnOpaqueNodeOfKnownTensorsIsACall) {
  GraphBuilder builder;
  const Value x = builder.input("x", {ElementType::Float32, Shape{Index(4)}});
  const auto op = std::make_shared<OpaqueOp>(OpaqueOp{"com.acme", "Frob-nicate", "", {}});
  const Value a = *builder.apply(OpKind::Neg, {*builder.apply(OpKind::Exp, {x})});
  const NodePtr node = builder.opaque(op, {a, a, Value{}}, {{ElementType::Float32, Shape{Index(6)}}, {}}, "frob");
  builder.output("y", *builder.apply(OpKind::Abs, {*builder.apply(OpKind::Tanh, {{node, 0}})}));
  Target target{TargetKind::Cpu, 1};
  target.calls_functions = true;
  auto costs = analytic_kernel_costs({});
  const auto plan = make_plan(builder.build(), target, *costs);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ASSERT_EQ(plan->kernels.size(), 3U);
  EXPECT_EQ(plan->kernels[0].name, "k0_Exp_Neg");
  EXPECT_EQ(plan->kernels[1].name, "k1_Frob_nicate");
  EXPECT_EQ(plan->kernels[2].name, "k2_Tanh_Abs");
  const Kernel& call = plan->kernels[1];
  EXPECT_EQ(call.kind, KernelKind::External);
  EXPECT_EQ(call.input_buffers.size(), 1U);
  EXPECT_EQ(call.output_buffers.size(), 1U);
  EXPECT_EQ(call.estimated_ms, 0);
  const auto operators = external_operators(*plan);
  ASSERT_EQ(operators.size(), 1U);
  EXPECT_EQ(operators[0].name, "com.acme::Frob-nicate");
  EXPECT_EQ(operators[0].nodes, std::vector<std::string>{"frob"});
  const auto timed = admitted_kernels(plan->graph, target);
  ASSERT_TRUE(timed.ok()) << timed.error().message;
  EXPECT_EQ(timed->size(), 2U);
  for (const KernelSpec& spec : *timed) EXPECT_NE(spec.kernel.kind, KernelKind::External);
}

// Why no function can be called, of all at once.
TEST(External, WhatNoFunctionCanBeCalledForSaysWhy) {
  const auto op = [](const std::string& domain) {
    return std::make_shared<OpaqueOp>(OpaqueOp{domain, "Frob", "", {}});
  };
  GraphBuilder builder;
  const Value x = builder.input("x", {ElementType::Float32, Shape{symbol("n")}});
  const TensorType floats = x.type();
  const auto add = [&](const std::string& name, const std::string& domain, const TensorType& type) {
    builder.output(name, {builder.opaque(op(domain), {x}, {type}, name, {name}), 0});
  };
  add("unknown", "custom", {ElementType::Float32, std::nullopt});
  add("found", "custom", {ElementType::Float32, Shape{symbol("found")}});
  add("text", "custom", {ElementType::String, Shape{symbol("n")}});
  add("ours", "", floats);
  add("right", "custom", floats);
  Target target{TargetKind::Cpu, 1};
  target.calls_functions = true;
  target.open = {{symbol_atom("n"), 8}};
  auto costs = analytic_kernel_costs({});
  const auto plan = make_plan(builder.build(), target, *costs);
  ASSERT_FALSE(plan.ok());
  const std::string& message = plan.error().message;
  EXPECT_EQ(message.rfind("4 nodes have no code:\n", 0), 0U) << message;
  for (const char* cause :
       {"node `unknown` (custom::Frob) has no definition here, and no function can be called for it: its output "
        "`unknown` has an unknown shape",
        "node `found` (custom::Frob) has no definition here, and no function can be called for it: its output `found` "
        "is f32[found], whose extents are not all known",
        "node `text` (custom::Frob) has no definition here, and no function can be called for it: its output `text` is "
        "of type string",
        "node `ours` (Frob) has no definition here at any size"})
    EXPECT_NE(message.find(cause), std::string::npos) << cause << "\n" << message;
  EXPECT_EQ(message.find("`right`"), std::string::npos) << message;
}

}  // namespace
}  // namespace gopt
