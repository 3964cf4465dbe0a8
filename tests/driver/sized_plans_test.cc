// One model's code for several sizes of its open extents.
#include "gopt/sized_plans.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../support/graph_with_weights.h"
#include "gopt/interpreter.h"
#include "gopt/kernel_costs.h"
#include "gopt/runnable_model.h"
#include "gopt/temporary.h"

namespace gopt {
namespace {

// With numbers, or the names of extents, in the places of `n` and `m`.
std::string text_of(const std::string& n, const std::string& m) {
  return "  input x : f32[" + n + ",32," + m + "]\n  input b : f32[" + n + R"(,1,1]
  input w : f32[32,48]
  t = Transpose(x) {perm=[0,2,1]}
  p = MatMul(t, w)
  s = Softmax(p) {axis=1}
  y = Mul(s, b)
  output y = y
)";
}
Graph graph_of(const std::string& n, const std::string& m) { return graph_with_weights(text_of(n, m)); }

Plan plan_of(const Graph& graph) {
  const auto costs = analytic_kernel_costs({});
  auto plan = make_plan(graph, {TargetKind::Cpu, 1}, *costs);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return *plan;
}

const std::vector<std::pair<std::string, std::string>> kSizes{{"1", "7"}, {"3", "7"}, {"3", "20"}};

SizedPlans some_plans() {
  std::vector<Plan> plans;
  for (const auto& [n, m] : kSizes) plans.push_back(plan_of(graph_of(n, m)));
  auto joined = join_sizes(graph_of("n", "m"), plans);
  EXPECT_TRUE(joined.ok()) << (joined.ok() ? "" : joined.error().message);
  return *joined;
}

TEST(SizedPlans, SayWhatIsOpen) {
  const SizedPlans plans = some_plans();
  EXPECT_EQ(plans.extents, (std::vector<std::string>{"n", "m"}));
  EXPECT_EQ(to_string(plans.inputs[0].type), "f32[n,32,m]");
  EXPECT_EQ(to_string(plans.inputs[1].type), "f32[n,1,1]");
  EXPECT_EQ(to_string(plans.outputs[0].type), "f32[n,m,48]");
  EXPECT_EQ(plans.sizes[2].extents, (std::vector<int64_t>{3, 20}));
}

TEST(SizedPlans, CodeIsRightAtEachSize) {
  const auto model = compile_sizes(some_plans(), 1);
  ASSERT_TRUE(model.ok()) << model.error().message;
  ASSERT_EQ((*model)->sizes().size(), kSizes.size());
  for (uint64_t turn = 0; turn < 2; turn++)  // back to a size that was left
    for (size_t k = 0; k < kSizes.size(); k++) {
      const auto inputs = (*model)->draw_at(7 + turn, (*model)->sizes()[k]);
      ASSERT_TRUE(inputs.ok()) << inputs.error().message;
      const auto found = (*model)->run(*inputs),
                 expected = interpret(graph_of(kSizes[k].first, kSizes[k].second), *inputs);
      ASSERT_TRUE(found.ok() && expected.ok()) << (found.ok() ? "" : found.error().message);
      EXPECT_TRUE(difference("y", (*expected)[0], (*found)[0], {}).passed) << k;
    }
}

TEST(SizedPlans, AnotherSizeIsAnErrorThatSaysWhichThereAre) {
  const auto model = compile_sizes(some_plans(), 1);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto tensor = [](std::vector<int64_t> dims) {
    const auto count = static_cast<size_t>(element_count(dims));
    return Tensor::from_values<double>(ElementType::Float32, std::move(dims), std::vector<double>(count));
  };
  const auto run = [&](int64_t n, int64_t m, int64_t other_n) {
    const auto outputs = (*model)->run({{"x", tensor({n, 32, m})}, {"b", tensor({other_n, 1, 1})}});
    return outputs.ok() ? to_string((*outputs)[0].tensor_type()) : outputs.error().message;
  };
  EXPECT_EQ(run(3, 20, 3), "f32[3,20,48]");
  EXPECT_EQ(run(1, 20, 1),
            "there is no code for n=1 m=20, but for n=1 m=7, n=3 m=7, n=3 m=20, and for sums of their n");
  EXPECT_EQ(run(3, 20, 1), "input `b` is f32[1,1,1], where n is 3 by an input before");
  EXPECT_EQ(run(3, 7, 3), "f32[3,7,48]");
  EXPECT_FALSE((*model)->draw_at(1, {{"n", 2}, {"m", 20}}).ok());
}

// Rows do not depend on each other: any number of them that is a sum of sizes is run in parts.
TEST(SizedPlans, SumsOfRowsAreRunInParts) {
  const auto model = compile_sizes(some_plans(), 1);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const std::vector<std::pair<int64_t, int64_t>> sums{{2, 7}, {5, 7}, {9, 20}, {8, 7}, {12, 20}};
  for (const auto& [n, m] : sums) {
    const auto inputs = (*model)->draw_at(static_cast<uint64_t>(n), {{"n", n}, {"m", m}});
    ASSERT_TRUE(inputs.ok()) << inputs.error().message;
    const auto found = (*model)->run(*inputs), expected = interpret(graph_of("n", "m"), *inputs);
    ASSERT_TRUE(found.ok() && expected.ok()) << (found.ok() ? "" : found.error().message);
    EXPECT_EQ((*found)[0].dims(), (std::vector<int64_t>{n, m, 48}));
    EXPECT_TRUE(difference("y", (*expected)[0], (*found)[0], {}).passed) << n << " " << m;
  }
  for (const int64_t n : {0, 4, 10})  // no sum of 3
    EXPECT_FALSE((*model)->draw_at(1, {{"n", n}, {"m", 20}}).ok()) << n;
}

// A model that mixes its rows is never run in parts.
TEST(SizedPlans, RowsThatDependOnEachOtherAreRunTogether) {
  const auto mixing = [](const std::string& n) {
    return graph_with_weights("  input x : f32[" + n + ",6]\n  y = Softmax(x) {axis=0}\n  output y = y\n");
  };
  const auto plans = join_sizes(mixing("n"), {plan_of(mixing("2")), plan_of(mixing("4"))});
  ASSERT_TRUE(plans.ok()) << plans.error().message;
  EXPECT_FALSE(plans->rows);
  EXPECT_EQ(plans->why_none, "n: y: its rows may depend on each other");
  const auto model = compile_sizes(*plans, 1);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ((*model)->draw_at(1, {{"n", 6}}).error().message, "there is no code for n=6, but for n=2, n=4");
}

int64_t weight_bytes(const Result<EmittedCode>& code) {
  EXPECT_TRUE(code.ok()) << (code.ok() ? "" : code.error().message);
  const auto folder = TemporaryFolder::create();
  EXPECT_TRUE(write_emitted(*code, folder->path() / "code", false).ok());
  return static_cast<int64_t>(std::filesystem::file_size(folder->path() / "code" / "weights.bin"));
}

TEST(SizedPlans, EqualWeightsAreStoredOnce) {
  const SizedPlans plans = some_plans();
  EXPECT_EQ(weight_bytes(emit(plans)), weight_bytes(emit(plans.sizes[0].plan)));
}

TEST(SizedPlans, EachSizeIsThereOnce) {
  const Plan plan = plan_of(graph_of("3", "7"));
  const auto joined = join_sizes(graph_of("n", "m"), {plan, plan});
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().message, "the size m=7 n=3 is given twice");
}

TEST(SizedPlans, AnExtentThatNoInputSaysIsAnError) {
  const auto joined = join_sizes(graph_of("n", "2*m + 1"), {plan_of(graph_of("3", "7"))});
  ASSERT_FALSE(joined.ok());
  EXPECT_NE(joined.error().message.find("no input has the extent m by itself"), std::string::npos)
      << joined.error().message;
}

}  // namespace
}  // namespace gopt
