// Rules that a model's own operators ask for: found around its dearest kernels, proved, and only then used.
#include "gopt/mutants.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "gopt/driver.h"
#include "gopt/generator.h"
#include "gopt/kernel_costs.h"
#include "graph_with_weights.h"
#include "mutation/extent_names.h"
#include "mutation/heavy_subgraphs.h"
#include "mutation/mutant_alphabet.h"

namespace gopt {
namespace {

using driver::ExtentRole;

// Inputs named w... are weights, of numbers that differ.
Graph graph_of(const std::string& text) {
  double next = 0;
  return graph_with_weights(text, [&] { return next += 0.001; });
}

Plan plan_of(const Graph& graph) {
  const auto costs = analytic_kernel_costs(Roofline());
  auto plan = make_plan(graph, {}, *costs);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return *plan;
}

// Two products of one input side by side: one product with the weights side by side is one kernel less.
Graph two_products() {
  return graph_of(
      "input x : f32[20,32]\ninput w1 : f32[32,48]\ninput w2 : f32[32,48]\np = MatMul(x, w1)\nq = MatMul(x, w2)\n"
      "s = Add(p, q)\noutput y = s");
}
std::set<NodeId> running(const Graph& graph) {
  std::set<NodeId> nodes;
  for (uint32_t k = 0; k < graph.nodes().size(); k++)
    if (!graph.nodes()[k]->is(OpKind::Input) && !graph.depends_on_weights_only(NodeId{k})) nodes.insert(NodeId{k});
  return nodes;
}

MutantOptions options_of_test() {
  MutantOptions options;
  options.seconds = 60;
  options.max_ops = 3;
  return options;
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

const Node& node_of(const Graph& graph, OpKind op) {
  return **std::ranges::find_if(graph.nodes(), [&](const NodePtr& node) { return node->is(op); });
}

constexpr const char* kDilated =
    "input x : f32[1,4,12,12]\ninput w1 : f32[6,4,3,3]\n"
    "c = Conv(x, w1) {dilations=[2,2], pads=[2,2,2,2]}\nr = Relu(c)\noutput y = r";
constexpr const char* kPools =
    "input x : f32[1,8,32,32]\na = MaxPool(x) {kernel_shape=[2,2], strides=[2,2]}\n"
    "b = MaxPool(a) {kernel_shape=[2,2], strides=[2,2]}\noutput y = b";

// ---- extents ----

TEST(ExtentNames, EqualExtentsOfOneRoleAreOneSymbol) {
  driver::ExtentNames names({.step = 2, .reach = 6}, false);
  names.add(ExtentRole::Batch, 1);
  for (int64_t extent : {1, 16, 32}) names.add(ExtentRole::Plain, extent);
  for (int64_t extent : {14, 28, 30}) names.add(ExtentRole::Spatial, extent);
  EXPECT_EQ(names.text(ExtentRole::Batch, 1), "n0");
  EXPECT_EQ(names.text(ExtentRole::Plain, 1), "1");
  EXPECT_EQ(names.text(ExtentRole::Plain, 16), "c1");
  EXPECT_EQ(names.text(ExtentRole::Plain, 32), "c2") << "no product, where no attribute speaks of extents";
  EXPECT_EQ(names.text(ExtentRole::Spatial, 14), "2*h3");
  EXPECT_EQ(names.text(ExtentRole::Spatial, 28), "2*2*h3");
  EXPECT_EQ(names.text(ExtentRole::Spatial, 30), "2*2*h3+2");
  EXPECT_EQ(names.quotient(ExtentRole::Spatial, 28, 2), "2*h3");
  EXPECT_EQ(names.quotient(ExtentRole::Spatial, 30, 2), std::nullopt);
  EXPECT_EQ(names.text_of_any(32), "c2");
  EXPECT_EQ(names.text_of_any(33), "33");
}

TEST(ExtentNames, ProductsWhereShapesSpeakOfThem) {
  driver::ExtentNames names({}, true);
  for (int64_t extent : {4, 8, 32}) names.add(ExtentRole::Plain, extent);
  EXPECT_EQ(names.text(ExtentRole::Plain, 32), "c0*c1");
  EXPECT_EQ(names.text_of_any(64), "c1*c1");
}

// ---- subgraphs ----

TEST(HeavySubgraphs, TheDearestKernelComesFirst) {
  const Graph graph = graph_of(
      "input x : f32[64,64]\ninput w1 : f32[64,256]\ninput w2 : f32[256,8]\nt = Tanh(x)\np = MatMul(t, w1)\n"
      "s = Softmax(p)\nq = MatMul(s, w2)\noutput y = q");
  const Plan plan = plan_of(graph);
  const auto found = driver::heavy_subgraphs(plan, 2);
  ASSERT_FALSE(found.empty());
  EXPECT_TRUE(found.front().contains(plan.graph.id_of(node_of(graph, OpKind::Softmax).inputs[0].node)));
  for (const auto& nodes : found) EXPECT_LE(nodes.size(), 2u);
}

TEST(HeavySubgraphs, WhatIsJoinedLaterIsLookedAtTogether) {
  const Graph graph = two_products();
  const auto found = driver::heavy_subgraphs(plan_of(graph), 4);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front(), running(graph));
}

// ---- alphabets ----

TEST(MutantAlphabet, ADilatedConvolutionAlsoWithoutDilationAndWithItsImageInParts) {
  const Graph graph = graph_of(kDilated);
  const auto text = driver::mutant_alphabet(graph, running(graph));
  ASSERT_TRUE(text);
  EXPECT_TRUE(has_line(*text, "activation 1 [n0,c1,2*h3,2*h3]")) << *text;
  EXPECT_TRUE(has_line(*text, "weight 1 [c2,c1,3,3]")) << *text;
  EXPECT_TRUE(has_line(*text, "composite SpaceToBatch")) << *text;
  EXPECT_NE(text->find("dilations=[1,1] group=1 pads=[1,1,1,1]"), std::string::npos) << *text;
  EXPECT_TRUE(has_line(*text, "partial")) << *text;
  GeneratorLimits limits;
  limits.max_ops = 1;
  limits.alphabet = *text;
  EXPECT_TRUE(
      generate_rules(limits, [](std::vector<RewriteRule>& rules) { return std::vector<bool>(rules.size()); }).ok());
}

TEST(MutantAlphabet, TypesThatAreNotEnumeratedHaveNone) {
  const Graph whole = graph_of("input x : i64[4]\ny = Add(x, x)\noutput y = y");
  EXPECT_FALSE(driver::mutant_alphabet(whole, running(whole)));
  const Graph open = graph_of("input x : f32[n]\ny = Add(x, x)\noutput y = y");
  EXPECT_FALSE(driver::mutant_alphabet(open, running(open)));
}

// ---- mutants ----

TEST(Mutants, EachIsProvedAndNoneIsKnown) {
  const Plan plan = plan_of(two_products());
  const FoundMutants found = find_mutants(plan, {}, options_of_test());
  EXPECT_EQ(found.subgraphs, 1);
  ASSERT_GE(found.rules.size(), 2u);
  for (const RewriteRule& rule : found.rules) {
    ASSERT_TRUE(rule.proof) << rule.name;
    EXPECT_EQ(rule.proof->rule, rule.content_hash());
    RewriteRule again = rule;
    EXPECT_EQ(prove_rule(again).verdict, Verdict::Proved) << rule.name;
  }
  EXPECT_TRUE(find_mutants(plan, found.rules, options_of_test()).rules.empty());
  const auto read = rules_or_error(parse_each_rule(print_mutants(found), "mutants.rules"));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->size(), found.rules.size());
}

// The generator goes from the dearer side to the cheaper one; the model has the cheaper one.
TEST(Mutants, ADilatedConvolutionOverPartsOfItsImage) {
  const FoundMutants found = find_mutants(plan_of(graph_of(kDilated)), {}, options_of_test());
  EXPECT_TRUE(std::ranges::any_of(found.rules, [](const RewriteRule& rule) {
    return rule.name.starts_with("conv-to-batchtospace-conv-spacetobatch-");
  })) << print_mutants(found);
}

// A bias before a padded convolution is one after it, but for the border: a region, corrected.
TEST(Mutants, WhatHoldsOnARegionIsCorrected) {
  const FoundMutants found =
      find_mutants(plan_of(graph_of("input x : f32[1,4,12,12]\ninput w1 : f32[6,4,3,3]\ninput w2 : f32[4,1,1]\n"
                                    "a = Add(x, w2)\nc = Conv(a, w1) {pads=[1,1,1,1]}\noutput y = c")),
                   {}, options_of_test());
  const auto corrected =
      std::ranges::find_if(found.rules, [](const RewriteRule& rule) { return rule.name.ends_with("-corrected"); });
  ASSERT_NE(corrected, found.rules.end()) << print_mutants(found);
  EXPECT_FALSE(corrected->is_partial());
  EXPECT_TRUE(corrected->proof);
}

TEST(Mutants, WhatIsNotProvedIsNoRule) {
  MutantOptions options = options_of_test();
  std::atomic<int> asked{0};
  options.prove = [&](const RewriteRule&) -> Result<FullRule> {
    asked++;
    return Error{"unknown"};
  };
  const FoundMutants found = find_mutants(plan_of(two_products()), {}, options);
  EXPECT_GT(found.matched, 0);
  EXPECT_EQ(asked, found.matched);
  EXPECT_EQ(found.proved, 0);
  EXPECT_TRUE(found.rules.empty());
}

TEST(Mutants, TheTimeIsKept) {
  const Plan plan = plan_of(graph_of(
      "input x : f32[8]\ninput y : f32[8]\na = Add(x, y)\nb = Mul(a, x)\nc = Sub(b, y)\nd = Div(c, x)\noutput z = d"));
  MutantOptions options = options_of_test();
  options.seconds = 0.5;
  options.max_ops = 7;  // hours
  options.prove = [](const RewriteRule&) -> Result<FullRule> { return Error{"unknown"}; };
  const FoundMutants found = find_mutants(plan, {}, options);
  EXPECT_EQ(found.subgraphs, 1);
  EXPECT_GT(found.candidates, 0);
  EXPECT_LT(found.seconds, 20);
  std::atomic<bool> stop{true};
  options.stop = &stop;
  EXPECT_EQ(find_mutants(plan, {}, options).subgraphs, 0);
}

// ---- in an optimization ----

TEST(Mutants, OneThatPaysIsAppliedAndTheResultAgrees) {
  DriverOptions options;
  options.mutation_seconds = 20;
  const Graph graph = graph_of(kPools);
  const auto outcome = optimize_graph(graph, {}, options);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  ASSERT_TRUE(outcome->mutants);
  ASSERT_FALSE(outcome->result.applied.empty()) << print_mutants(*outcome->mutants);
  for (const AppliedRule& applied : outcome->result.applied) EXPECT_TRUE(outcome->proofs.contains(applied.rule));
  EXPECT_LT(outcome->result.after.time_ms, outcome->result.before.time_ms);
  EXPECT_TRUE(outcome->check.checked && outcome->check.passed);
}

TEST(Mutants, NothingIsLookedForUnasked) {
  const auto outcome = optimize_graph(graph_of(kPools), {}, DriverOptions());
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_FALSE(outcome->mutants);
  EXPECT_TRUE(outcome->result.applied.empty());
  for (const Phase& phase : outcome->phases) EXPECT_NE(phase.name, "finding mutants");
}

TEST(Mutants, WithoutMarksWhereThatIsAsked) {
  DriverOptions options;
  options.mutation_seconds = 20;
  const auto all = optimize_graph(two_products(), {}, options);
  options.only_unmarked_mutants = true;
  const auto safe = optimize_graph(two_products(), {}, options);
  ASSERT_TRUE(all.ok() && safe.ok());
  const auto is_marked = [](const RewriteRule& rule) { return rule.marks != RuleMarks(); };
  EXPECT_TRUE(std::ranges::any_of(all->mutants->rules, is_marked));
  EXPECT_FALSE(std::ranges::any_of(safe->mutants->rules, is_marked));
}

}  // namespace
}  // namespace gopt
