// What a plan makes of one node, and what else was priced.
#include "gopt/node_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "../support/graph_with_weights.h"
#include "gopt/kernel_costs.h"
#include "gopt/node_names.h"

namespace gopt {
namespace {

constexpr const char* kBlock = R"(  input x : f32[1,32,16,16]
  input w : f32[32,32,3,3]
  input wf : f32[32,1,1]
  k = Abs(wf)
  c = Conv(x, w) {pads=[1,1,1,1]}
  r = Relu(c)
  s = Mul(r, k)
  e = Exp(s)
  p = Softmax(e) {axis=3}
  v = Reshape(p) {shape=[1,8192]}
  output y = v
)";

NodePlan plan_of(const Graph& graph, const std::string& name, int lanes = 16) {
  const auto node = find_node(graph, name);
  EXPECT_TRUE(node.ok()) << (node.ok() ? "" : node.error().message);
  auto costs = analytic_kernel_costs({});
  return plan_of_node(graph, *node, {.threads = 1, .vector_lanes = lanes}, *costs);
}

struct RoleRow {
  const char* node;
  NodeRole role;
};
class Roles : public testing::TestWithParam<RoleRow> {};
TEST_P(Roles, AreAsThePlanHasThem) {
  EXPECT_EQ(plan_of(graph_with_weights(kBlock), GetParam().node).role, GetParam().role) << GetParam().node;
}
INSTANTIATE_TEST_SUITE_P(NodePlan, Roles,
                         testing::Values(RoleRow{"x", NodeRole::Input}, RoleRow{"k", NodeRole::Folded},
                                         RoleRow{"c", NodeRole::Library}, RoleRow{"r", NodeRole::Epilogue},
                                         RoleRow{"s", NodeRole::Inlined}, RoleRow{"p", NodeRole::Own},
                                         RoleRow{"v", NodeRole::View}),
                         [](const auto& info) { return std::string(info.param.node); });

TEST(NodePlan, OptionsAreAllLayoutsAndImplementationsWithTheChosenOneFirst) {
  const NodePlan plan = plan_of(graph_with_weights(kBlock), "c");
  ASSERT_EQ(plan.kernels.size(), 1U);
  EXPECT_NE(plan.kernels[0].find("convolution"), std::string::npos) << plan.kernels[0];
  ASSERT_GT(plan.options.size(), 3U);
  EXPECT_TRUE(plan.options[0].is_chosen);
  EXPECT_EQ(std::count_if(plan.options.begin(), plan.options.end(), [](const auto& o) { return o.is_chosen; }), 1);
  std::set<std::string> layouts, implementations;
  for (const KernelOption& option : plan.options) {
    layouts.insert(to_string(option.layout));
    implementations.insert(option.implementation);
    EXPECT_GT(option.time_ms, 0);
    EXPECT_EQ(option.covers, (std::vector<std::string>{"c", "r"}));
  }
  EXPECT_EQ(layouts, (std::set<std::string>{"blocked16", "channels-last", "plain"}));
  EXPECT_TRUE(implementations.contains("direct") && implementations.contains("winograd"));
}

// Of blocks of 8 channels there are loops of our own.
TEST(NodePlan, BlocksAreOfTheProcessorsLanes) {
  const NodePlan plan = plan_of(graph_with_weights(kBlock), "c", 8);
  std::set<std::string> layouts, implementations;
  for (const KernelOption& option : plan.options) {
    layouts.insert(to_string(option.layout));
    implementations.insert(option.implementation);
  }
  EXPECT_EQ(layouts, (std::set<std::string>{"blocked8", "channels-last", "plain"}));
  EXPECT_TRUE(implementations.contains("blocks") && implementations.contains("winograd"));
}

// Whether channels fill blocks or not; of fewer than 16 the transforms cost more than they save.
TEST(NodePlan, WinogradIsForSixteenChannelsAndMore) {
  for (const int channels : {15, 16, 17, 24, 33}) {
    const std::string c = std::to_string(channels);
    const NodePlan plan = plan_of(graph_with_weights("input x : f32[1," + c + ",16,16]\ninput w : f32[" + c + "," + c +
                                                     ",3,3]\nc = Conv(x, w) {pads=[1,1,1,1]}\noutput y = c\n"),
                                  "c");
    const bool is_offered = std::ranges::any_of(
        plan.options, [](const KernelOption& option) { return option.implementation == "winograd"; });
    EXPECT_EQ(is_offered, channels >= 16) << channels;
  }
}

TEST(NodePlan, TheChosenPlanIsTheCheapestOfThose) {
  const NodePlan plan = plan_of(graph_with_weights(kBlock), "c");
  const auto cheapest = std::min_element(plan.plans.begin(), plan.plans.end(),
                                         [](const auto& a, const auto& b) { return a.time_ms < b.time_ms; });
  ASSERT_GE(plan.plans.size(), 3U);
  EXPECT_TRUE(cheapest->is_chosen);
}

TEST(NodePlan, ConversionsAreToTheOtherLayouts) {
  const NodePlan plan = plan_of(graph_with_weights(kBlock), "c");
  ASSERT_FALSE(plan.conversions.empty());
  for (const ConversionOption& conversion : plan.conversions) {
    EXPECT_NE(conversion.from, conversion.to);
    EXPECT_GT(conversion.time_ms, 0);
  }
}

struct LimitRow {
  const char* name;
  const char* text;
  const char* node;
  FusionLimit limit;
};
class Limits : public testing::TestWithParam<LimitRow> {};
TEST_P(Limits, SayWhyAValueIsStored) {
  const NodePlan plan = plan_of(graph_with_weights(GetParam().text), GetParam().node);
  EXPECT_EQ(plan.limit, GetParam().limit) << to_string(plan.limit);
}
INSTANTIATE_TEST_SUITE_P(
    NodePlan, Limits,
    testing::Values(
        LimitRow{"Output", "input x : f32[64]\na = Exp(x)\nb = Neg(a)\noutput y = a\noutput z = b", "a",
                 FusionLimit::Output},
        LimitRow{"None", "input x : f32[64]\na = Exp(x)\nb = Neg(a)\noutput z = b", "a", FusionLimit::None},
        LimitRow{"SeveralUsers",
                 "input x : f32[32,64]\ninput w : f32[64,64]\nc = MatMul(x, w)\na = Relu(c)\nb = Exp(c)\n"
                 "output y = a\noutput z = b",
                 "c", FusionLimit::SeveralUsers},
        LimitRow{"UserNoEpilogue",
                 "input x : f32[32,64]\ninput w : f32[64,64]\nc = MatMul(x, w)\na = Exp(c)\noutput y = a", "c",
                 FusionLimit::UserNoEpilogue},
        LimitRow{"ActivationLast",
                 "input x : f32[32,64]\ninput w : f32[64,64]\nc = MatMul(x, w)\nr = Relu(c)\na = Exp(r)\noutput y = a",
                 "r", FusionLimit::ActivationLast},
        LimitRow{"LibraryUser",
                 "input x : f32[32,64]\ninput w : f32[64,64]\na = Exp(x)\nc = MatMul(a, w)\noutput y = c", "a",
                 FusionLimit::LibraryUser},
        LimitRow{"Reduction", "input x : f32[64,64]\na = Softmax(x) {axis=1}\nb = Softmax(a) {axis=1}\noutput y = b",
                 "a", FusionLimit::Reduction}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gopt
