// Code that calls functions for operators without definition, checked as far as it is ours.
#include "../../driver/answered_run.h"

#include <gtest/gtest.h>

#include "../../driver/draw_inputs.h"
#include "gopt/driver.h"
#include "gopt/interpreter.h"
#include "gopt/kernel_costs.h"

namespace gopt {
namespace {

using namespace driver;

// One operator before a node without definition, one after it and what is before.
Graph with_secret(OpKind before, OpKind after, const Index& rows) {
  GraphBuilder builder;
  const Value x = builder.input("x", {ElementType::Float32, Shape{rows, Index(5)}});
  const Value a = *builder.apply(before, {x});
  const auto op = std::make_shared<OpaqueOp>(OpaqueOp{"custom", "Secret", "", {}});
  const NodePtr secret = builder.opaque(op, {a}, {x.type()}, "secret");
  builder.output("y", *builder.apply(OpKind::Mul, {*builder.apply(after, {{secret, 0}}), a}));
  return builder.build();
}

DriverOptions options_for_calls() {
  DriverOptions options;
  options.target.calls_functions = options.wants_code = true;
  options.runs = 3;
  return options;
}

TEST(AnsweredRun, AllThatCodeComputesItselfIsCompared) {
  const Graph graph = with_secret(OpKind::Tanh, OpKind::Exp, Index(3));
  const auto costs = analytic_kernel_costs({});
  const auto plan = make_plan(graph, options_for_calls().target, *costs);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  auto code = compile_plan(*plan, 1);
  ASSERT_TRUE(code.ok()) << code.error().message;
  const auto differs = [&](const Graph& other) -> std::vector<bool> {
    const auto part = part_to_check(other, other);
    EXPECT_TRUE(part.ok());
    const auto inputs = draw_inputs(part->original, 1);
    EXPECT_TRUE(inputs.ok());
    const auto expected = interpret(part->original, *inputs);
    const auto found = run_answered(**code, *part, *inputs);
    EXPECT_TRUE(expected.ok() && found.ok()) << (found.ok() ? "" : found.error().message);
    std::vector<bool> all;
    for (size_t k = 0; k < expected->size(); k++)
      all.push_back(!difference("", (*expected)[k], (*found)[k], {}).passed);
    return all;
  };
  using Flags = std::vector<bool>;
  EXPECT_EQ(differs(graph), (Flags{false, false}));  // what the node takes, and the output
  EXPECT_EQ(differs(with_secret(OpKind::Tanh, OpKind::Abs, Index(3))), (Flags{false, true}));
  EXPECT_EQ(differs(with_secret(OpKind::Sin, OpKind::Exp, Index(3))), (Flags{true, true}));
}

TEST(AnsweredRun, TheDriverChecksAndTimesSuchCode) {
  for (const bool is_open : {false, true}) {
    const Graph graph = with_secret(OpKind::Tanh, OpKind::Exp, is_open ? symbol("rows") : Index(3));
    DriverOptions options = options_for_calls();
    if (is_open) options.target.open = {{symbol_atom("rows"), 8}};
    const auto outcome = optimize_graph(graph, {}, options);
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    ASSERT_TRUE(outcome->plan && outcome->code_check);
    EXPECT_TRUE(outcome->code_check->checked && outcome->code_check->passed) << outcome->code_check->why_not;
    EXPECT_EQ(outcome->code_check->nodes, 4);
    EXPECT_EQ(outcome->code_check->nodes_checked, 3);
    EXPECT_EQ(outcome->code_check->left_out, std::vector<std::string>{"Secret"});
  }
}

}  // namespace
}  // namespace gopt
