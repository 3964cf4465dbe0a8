// What is computed inside which kernel, where costs say other than the rules.
#include <gtest/gtest.h>

#include <functional>

#include "../support/graph_with_weights.h"
#include "gopt/kernel_costs.h"
#include "gopt/node_names.h"
#include "gopt/node_plan.h"

namespace gopt {
namespace {

// Times by what a kernel covers ("Conv Add Relu"), as if they were measured.
class GivenCosts : public KernelCosts {
 public:
  explicit GivenCosts(std::function<double(const std::string&)> time, bool is_measured = true)
      : time_(std::move(time)), is_measured_(is_measured) {}
  double time_ms(const Plan&, const Kernel& kernel) override {
    std::string covered;
    for (const NodePtr& node : kernel.nodes) covered += (covered.empty() ? "" : " ") + op_info(node->op).name;
    return time_(covered);
  }
  bool is_measured(const Plan&, const Kernel&) const override { return is_measured_; }
  double uncertainty() const override { return 0.05; }

 private:
  std::function<double(const std::string&)> time_;
  bool is_measured_;
};

std::vector<std::string> kernels_of(const Plan& plan) {
  std::vector<std::string> names;
  for (const Kernel& k : plan.kernels) names.push_back(k.name.substr(k.name.find('_') + 1));
  return names;
}

using Names = std::vector<std::string>;
struct Row {
  const char* name;
  const char* text;
  Names by_rule;
  std::map<std::string, double> dear;  // kernels that take another time than 1 ms
  Names by_cost;
};
std::ostream& operator<<(std::ostream& os, const Row& row) { return os << row.name; }

constexpr const char *kTwoUsers =
                         "input x : f32[64,64]\nr = Relu(x)\na = Softmax(r) {axis=1}\nb = Softmax(r) {axis=0}\n"
                         "output y = a\noutput z = b",
                     *kOften = "input x : f32[64,1]\ninput v : f32[64,4]\nr = Exp(x)\ns = Add(r, v)\noutput y = s",
                     *kStatistic =
                         "input x : f32[64,64]\nm = ReduceMean(x) {axes=[1], keepdims=1}\ns = Sub(x, m)\n"
                         "output y = s",
                     *kResidual =
                         "input x : f32[1,32,8,8]\ninput w : f32[32,32,1,1]\na = Conv(x, w)\nb = Relu(a)\n"
                         "c = Conv(b, w)\nd = Add(c, b)\ne = Relu(d)\nf = Conv(e, w)\noutput y = f",
                     *kMoved = "input x : f32[16,24,8]\nt = Transpose(x) {perm=[2,0,1]}\na = Exp(t)\noutput y = a",
                     *kSums =
                         "input x : f32[64,64]\ninput v : f32[64,64]\ns = Add(x, v)\na = Softmax(s) {axis=1}\n"
                         "b = Softmax(s) {axis=0}\noutput y = a\noutput z = b",
                     *kReduced = "input x : f32[64,64]\na = Softmax(x) {axis=1}\nb = Neg(a)\noutput y = b";

const Row kRows[] = {
    {"ComputedInSeveralUsersIsStored",
     kTwoUsers,
     {"Relu_Softmax", "Relu_Softmax"},
     {{"Relu Softmax", 3}},
     {"Relu", "Softmax", "Softmax"}},
    {"SeveralUsersComputeItThatWouldReadMuchAgain",
     kSums,
     {"Add", "Softmax", "Softmax"},
     {{"Add Softmax", 1.2}},
     {"Add_Softmax", "Add_Softmax"}},
    {"AUserThatReadsItOftenComputesIt", kOften, {"Exp", "Add"}, {}, {"Exp_Add"}},
    {"AStatisticIsComputedWhereItIsUsed", kStatistic, {"ReduceMean", "Sub"}, {}, {"ReduceMean_Sub"}},
    {"AReductionIsStoredForItsOnlyUser", kReduced, {"Softmax_Neg"}, {{"Softmax Neg", 3}}, {"Softmax", "Neg"}},
    {"WhatIsMovedIsCopied", kMoved, {"Transpose_Exp"}, {{"Transpose Exp", 3}}, {"Transpose", "Exp"}},
    {"AStepOfALibraryKernelIsAKernel",
     kResidual,
     {"Conv_Relu", "Conv_Add_Relu", "Conv"},
     {{"Conv Add Relu", 3}},
     {"Conv_Relu", "Conv", "Add_Relu", "Conv"}},
};

class FusionByCost : public testing::TestWithParam<Row> {
 protected:
  Graph graph_ = graph_with_weights(GetParam().text);
  double time_of(const std::string& covered) const {
    const auto own = GetParam().dear.find(covered);
    return own == GetParam().dear.end() ? 1 : own->second;
  }
  // The plain plan alone: conversions between layouts are no matter here.
  Plan plan(const std::function<double(const std::string&)>& time, bool is_measured = true,
            std::set<std::string> without = {}) const {
    GivenCosts costs(time, is_measured);
    Target target;
    target.without = std::move(without);
    target.without.insert({"layout:blocked", "layout:channels-last"});
    auto plan = make_plan(graph_, target, costs);
    EXPECT_TRUE(plan.ok() && check_plan(*plan).ok()) << (plan.ok() ? "" : plan.error().message);
    return *std::move(plan);
  }
};

TEST_P(FusionByCost, IsAsTheTimesOfTheKernelsAre) {
  const auto time = [&](const std::string& covered) { return time_of(covered); };
  EXPECT_EQ(kernels_of(plan(time)), GetParam().by_cost);
  EXPECT_EQ(kernels_of(plan(time, true, {"fusion:by-cost"})), GetParam().by_rule);
}

// All kernels of what the rules say take next to nothing.
TEST_P(FusionByCost, StaysWithTheRulesWhereTheyAreRight) {
  const Names& rule = GetParam().by_rule;
  const auto time = [&](const std::string& covered) {
    std::string name = covered;
    std::replace(name.begin(), name.end(), ' ', '_');
    return std::find(rule.begin(), rule.end(), name) != rule.end() ? 0.1 : 1;
  };
  EXPECT_EQ(kernels_of(plan(time)), rule);
}

TEST_P(FusionByCost, StaysWithTheRulesWhereTheDifferenceMayBeNoise) {
  const Names& rule = GetParam().by_rule;
  const double step = 0.97 * static_cast<double>(rule.size()) / static_cast<double>(GetParam().by_cost.size());
  const auto time = [&](const std::string& covered) {
    std::string name = covered;
    std::replace(name.begin(), name.end(), ' ', '_');
    return std::find(rule.begin(), rule.end(), name) != rule.end() ? 1 : step;
  };
  EXPECT_EQ(kernels_of(plan(time)), rule);
}

TEST_P(FusionByCost, IsAskedOfKernelsThatAreTimed) {
  const Plan chosen = plan([&](const std::string& covered) { return time_of(covered); });
  std::set<std::string> signatures;
  const auto admitted = admitted_kernels(graph_, chosen.target);
  ASSERT_TRUE(admitted.ok()) << admitted.error().message;
  for (const KernelSpec& spec : *admitted) EXPECT_TRUE(signatures.insert(kernel_signature(spec)).second);
  for (const Kernel& kernel : chosen.kernels)
    EXPECT_TRUE(signatures.contains(kernel_signature(chosen, kernel))) << kernel.name;
}

INSTANTIATE_TEST_SUITE_P(Rows, FusionByCost, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

Names kernels_by(const char* text, GivenCosts costs) {
  const auto plan = make_plan(graph_with_weights(text), {}, costs);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return plan.ok() ? kernels_of(*plan) : Names();
}

TEST(FusionByEstimates, TakesMoreOfADifference) {
  const auto costs = [](double together) {
    return GivenCosts([together](const std::string& covered) { return covered == "Transpose Exp" ? together : 1; },
                      false);
  };
  EXPECT_EQ(kernels_by(kMoved, costs(2.4)), (Names{"Transpose_Exp"}));
  EXPECT_EQ(kernels_by(kMoved, costs(2.8)), (Names{"Transpose", "Exp"}));
}

// Analytic costs count each node of a kernel once.
TEST(FusionByEstimates, ComputesNothingAgainWithinAKernel) {
  const auto all_alike = [](const std::string&) { return 1.0; };
  EXPECT_EQ(kernels_by(kOften, GivenCosts(all_alike, false)), (Names{"Exp", "Add"}));
  EXPECT_EQ(kernels_by(kStatistic, GivenCosts(all_alike, false)), (Names{"ReduceMean", "Sub"}));
}

// A kernel that covers one thing with another, and both of it taken apart, twelve times.
TEST(FusionByCostOfBlocks, EqualBlocksAreDecidedAlike) {
  std::string text = "input x0 : f32[1,32,8,8]\ninput w : f32[32,32,1,1]\n";
  for (int k = 0; k < 12; k++) {
    const std::string n = std::to_string(k), next = std::to_string(k + 1);
    text += "a" + n + " = Conv(x" + n + ", w)\nb" + n + " = Relu(a" + n + ")\nc" + n + " = Conv(b" + n + ", w)\nx" +
            next + " = Add(c" + n + ", b" + n + ")\n";
  }
  const Names names =
      kernels_by((text + "output y = x12").c_str(),
                 GivenCosts([](const std::string& covered) { return covered == "Conv Add" ? 3.0 : 1.0; }));
  EXPECT_EQ(std::count(names.begin(), names.end(), "Conv_Add"), 0);
  EXPECT_EQ(std::count(names.begin(), names.end(), "Add"), 12);
}

NodePlan explained(const char* text, const std::string& name, KernelCosts& costs) {
  const Graph graph = graph_with_weights(text);
  const auto node = find_node(graph, name);
  EXPECT_TRUE(node.ok());
  return plan_of_node(graph, *node, {}, costs);
}

TEST(FusionByCostExplained, SaysWhatBothWaysTake) {
  GivenCosts costs([](const std::string& covered) { return covered == "Transpose Exp" ? 3.0 : 1.0; });
  const NodePlan plan = explained(kMoved, "t", costs);
  EXPECT_EQ(plan.role, NodeRole::Own);
  EXPECT_EQ(plan.limit, FusionLimit::Costs);
  ASSERT_EQ(plan.fusion.size(), 2U);
  EXPECT_EQ(plan.fusion[0].way, "stored");
  EXPECT_EQ(plan.fusion[0].time_ms, 2);
  EXPECT_TRUE(plan.fusion[0].is_chosen);
  EXPECT_EQ(plan.fusion[1].way, "inside its users");
  EXPECT_EQ(plan.fusion[1].time_ms, 3);
  EXPECT_FALSE(plan.fusion[1].is_chosen);
}

TEST(FusionByCostExplained, SaysWhyAStepStaysInALibraryKernel) {
  GivenCosts costs([](const std::string&) { return 1.0; });
  const NodePlan plan = explained(kResidual, "d", costs);
  EXPECT_EQ(plan.role, NodeRole::Epilogue);
  ASSERT_EQ(plan.fusion.size(), 2U);
  EXPECT_EQ(plan.fusion[0].way, "a step of the library kernel");
  EXPECT_TRUE(plan.fusion[0].is_chosen);
  EXPECT_TRUE(plan.fusion[1].is_least);
}

TEST(FusionByCostExplained, HasNothingToSayWhereRulesDecide) {
  GivenCosts costs([](const std::string&) { return 1.0; });
  EXPECT_TRUE(explained(kMoved, "a", costs).fusion.empty());
}

}  // namespace
}  // namespace gopt
