// The search: what it finds, when it stops, what its options do.
#include <gtest/gtest.h>

#include "count_cost.h"
#include "gopt/text.h"
#include "rules.h"
#include "search_rules.h"

namespace gopt {
namespace {

Graph relu_chain(int pairs) {
  GraphBuilder builder;
  Value x = builder.input("x", {ElementType::Float32, Shape{3}});
  for (int i = 0; i < pairs; i++) {
    x = *builder.apply(OpKind::Relu, {*builder.apply(OpKind::Relu, {x})});
    x = *builder.apply(OpKind::Exp, {x});
  }
  builder.output("y", x);
  return builder.build();
}

Graph tanh_exp() {
  GraphBuilder builder;
  const Value x = builder.input("x", {ElementType::Float32, Shape{3}});
  builder.output("y", *builder.apply(OpKind::Exp, {*builder.apply(OpKind::Tanh, {x})}));
  return builder.build();
}

OptimizeResult run(const Graph& graph, const SearchOptions& options) {
  CountCost costs;
  auto result = optimize(graph, rules_in(kSearchRules), costs, options);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? *result : OptimizeResult();
}

SearchOptions without_uphill() {
  SearchOptions options = untimed();
  options.disabled_rules = {"uphill"};
  return options;
}

TEST(Search, APartialRuleIsNotApplied) {
  const std::string text = R"(
rule pad-of-relu
  var x f32[n]
  left
    a = Relu(x)
    b = Relu(a)
    return b
  right
    c = Neg(x)
    return c
  region 0 [0:1]
end
)";
  const auto graph = parse_graph("graph g\ninput x : f32[4]\na = Relu(x)\nb = Relu(a)\noutput y = b\nend\n");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  CountCost costs;
  const auto result = optimize(*graph, rules_in(text), costs, untimed());
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_TRUE(result->applied.empty());
}

TEST(Search, AppliesOneRuleEverywhereInFewSteps) {
  CountCost costs;
  const auto result = optimize(relu_chain(30), rules_in(kSearchRules), costs, without_uphill());
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->after.kernels, 60);
  EXPECT_EQ(result->applied.size(), 30u);
  EXPECT_EQ(result->stop_reason, StopReason::Saturated);
  EXPECT_LT(result->steps, 5);
  EXPECT_LT(costs.calls, 20);
}

// x (v w) has one product for each run, and v w is computed once: but not by code generation where that takes minutes.
TEST(Search, LeavesNoLongProductsOfWeights) {
  const std::string rule = R"(
rule product-of-weights
  var x f32[a, b]
  var v f32[b, c]
  var w f32[c, d]
  left
    p = MatMul(x, v)
    q = MatMul(p, w)
    return q
  right
    p = MatMul(v, w)
    q = MatMul(x, p)
    return q
end
)";
  for (const auto& [extent, count] : {std::pair("64", 1), {"8192", 0}}) {
    const std::string n = extent;
    const auto graph = parse_graph(
        "graph chain\ninput x : f32[2," + n +
        "]\nconstant a = f32[] {0.5}\nconstant b = f32[] {2}\nconstant s = i64[2] {" + n + "," + n +
        "}\nv = Expand(a, s)\nw = Expand(b, s)\np = MatMul(x, v)\nq = MatMul(p, w)\n" + "output y = q\nend\n");
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    CountCost costs;
    const auto result = optimize(*graph, rules_in(rule), costs, untimed());
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->applied.size(), static_cast<size_t>(count)) << n;
  }
}

TEST(Search, GoesUphillWithinAlpha) {
  SearchOptions options = untimed();
  options.alpha = 3;
  const OptimizeResult wide = run(tanh_exp(), options);
  EXPECT_EQ(wide.after.kernels, 1);
  ASSERT_EQ(wide.applied.size(), 2u);
  EXPECT_EQ(wide.applied[0].rule, "uphill");
  EXPECT_EQ(wide.applied[1].rule, "downhill");
  EXPECT_GT(wide.applied[0].cost_after_ms, wide.applied[0].cost_before_ms);

  options.alpha = 1.1;
  const OptimizeResult narrow = run(tanh_exp(), options);
  EXPECT_EQ(narrow.after.kernels, 2);
  EXPECT_TRUE(narrow.applied.empty());
}

// As if the rule that is refused were not there, and each rule of a trace is asked about.
TEST(Search, ARuleThatIsRefusedIsNotReliedOn) {
  SearchOptions options = untimed();
  options.alpha = 3;
  std::vector<std::string> asked;
  options.confirm = [&](const RewriteRule& rule) -> std::optional<std::string> {
    asked.push_back(rule.name);
    if (rule.name == "downhill") return "forged";
    return std::nullopt;
  };
  const OptimizeResult result = run(tanh_exp(), options);
  EXPECT_EQ(asked, (std::vector<std::string>{"uphill", "downhill"})) << "the second search found nothing";
  ASSERT_EQ(result.refused.size(), 1u);
  EXPECT_EQ(result.refused[0].rule, "downhill");
  EXPECT_EQ(result.refused[0].why, "forged");
  EXPECT_TRUE(result.applied.empty());
  SearchOptions disabled = untimed();
  disabled.alpha = 3;
  disabled.disabled_rules = {"downhill"};
  const OptimizeResult without = run(tanh_exp(), disabled);
  EXPECT_EQ(result.graph.hash(), without.graph.hash());
  EXPECT_EQ(result.graphs_seen, without.graphs_seen);
  EXPECT_EQ(result.steps, without.steps);
}

TEST(Search, OnlyWhatTheResultRestsOnIsConfirmed) {
  SearchOptions options = untimed();
  options.alpha = 3;
  std::vector<std::string> asked;
  options.confirm = [&](const RewriteRule& rule) {
    asked.push_back(rule.name);
    return std::optional<std::string>();
  };
  const OptimizeResult result = run(relu_chain(3), options);
  EXPECT_EQ(asked, std::vector<std::string>{"relu-twice"});
  EXPECT_EQ(result.applied.size(), 3u);
  EXPECT_TRUE(result.refused.empty());
}

TEST(Search, GreedyTakesOnlyWhatImproves) {
  SearchOptions options = untimed();
  options.search = SearchKind::Greedy;
  options.alpha = 3;
  EXPECT_EQ(run(tanh_exp(), options).after.kernels, 2);
  EXPECT_EQ(run(relu_chain(4), options).after.kernels, 8);
}

// A beam goes uphill without alpha, as far as its generations hold the way.
// Ten, of one Abs alone five; of everything between, twenty.
class AllOrNothing : public CostOracle {
 public:
  explicit AllOrNothing(long before) : before_(before) {}
  Cost estimate(const Graph& graph) override {
    long count = 0;
    for (const NodePtr& node : graph.nodes()) count += node->is(OpKind::Abs);
    Cost cost;
    cost.kernels = static_cast<int>(count);
    cost.time_ms = count == before_ ? 10 : count == 1 ? 5 : 20;
    return cost;
  }

 private:
  long before_;
};

// Each step alone costs more than alpha allows; the last one pays.
TEST(Search, ARuleIsTriedEverywhereAndAgain) {
  const char* const rule =
      "rule merge\n  var x f32[...]\n  left\n    a = Abs(x)\n    b = Abs(a)\n    return b\n  right\n    c = "
      "Abs(x)\n    return c\nend\n";
  GraphBuilder builder;
  Value x = builder.input("x", {ElementType::Float32, Shape{3}});
  for (int i = 0; i < 9; i++) x = *builder.apply(OpKind::Abs, {x});
  builder.output("y", x);
  AllOrNothing costs(9);
  SearchOptions options = untimed();
  options.disabled_passes = pass_names();
  const auto result = optimize(builder.build(), rules_in(rule), costs, options);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->after.time_ms, 5) << print_graph(result->graph);
  EXPECT_EQ(result->applied.size(), 8u);
}

TEST(Search, ABeamGoesUphill) {
  SearchOptions options = untimed();
  options.search = SearchKind::Beam;
  options.alpha = 1;
  const OptimizeResult found = run(tanh_exp(), options);
  EXPECT_EQ(found.after.kernels, 1);
  ASSERT_EQ(found.applied.size(), 2u);
  EXPECT_EQ(found.applied[0].rule, "uphill");
}

TEST(Search, ABeamIsAsWideAsItIsSaid) {
  GraphBuilder builder;
  Value x = builder.input("x", {ElementType::Float32, Shape{3}});
  for (int k = 0; k < 3; k++)  // each has an uphill rewrite of its own
    x = *builder.apply(OpKind::Exp, {*builder.apply(OpKind::Tanh, {x})});
  builder.output("y", x);
  SearchOptions options = untimed();
  options.search = SearchKind::Beam;
  options.max_steps = 4;
  options.beam_width = 1;
  const OptimizeResult narrow = run(builder.build(), options);
  options.beam_width = 8;
  const OptimizeResult wide = run(builder.build(), options);
  // After four graphs one of width 1 is three rewrites deep; the wide one still is in its second generation.
  EXPECT_LT(narrow.after.time_ms, wide.after.time_ms);
}

TEST(Search, NoneLeavesTheGraph) {
  SearchOptions options = untimed();
  options.search = SearchKind::None;
  const Graph graph = relu_chain(2);
  const OptimizeResult result = run(graph, options);
  EXPECT_TRUE(result.graph.same_as(graph));
  EXPECT_EQ(result.stop_reason, StopReason::Off);
}

TEST(Search, StopsAtItsLimits) {
  SearchOptions steps = untimed();
  steps.max_steps = 3;
  steps.alpha = 10;
  EXPECT_EQ(run(tanh_exp(), steps).stop_reason, StopReason::StepLimit);
  EXPECT_EQ(run(tanh_exp(), steps).steps, 3);

  SearchOptions no_time;
  no_time.budget_seconds = 0;
  EXPECT_EQ(run(relu_chain(2), no_time).stop_reason, StopReason::TimeLimit);

  const std::atomic<bool> stop{true};
  SearchOptions interrupted = untimed();
  interrupted.stop = &stop;
  EXPECT_EQ(run(relu_chain(2), interrupted).stop_reason, StopReason::Interrupted);
}

TEST(Search, TheQueueStaysSmall) {
  SearchOptions options = untimed();
  options.alpha = 10;
  options.max_queue = 2;
  options.max_steps = 40;
  EXPECT_EQ(run(tanh_exp(), options).after.kernels, 1);
}

TEST(Search, IsDeterministicForAStepBudget) {
  SearchOptions options = untimed();
  options.alpha = 4;
  options.max_steps = 30;
  GraphBuilder builder;
  Value x = builder.input("x", {ElementType::Float32, Shape{3}});
  for (int i = 0; i < 3; i++) x = *builder.apply(OpKind::Exp, {*builder.apply(OpKind::Tanh, {x})});
  builder.output("y", x);
  const OptimizeResult first = run(builder.build(), options), second = run(builder.build(), options);
  EXPECT_EQ(first.graph.hash(), second.graph.hash());
  EXPECT_EQ(first.rules_tried, second.rules_tried);
  EXPECT_EQ(first.graphs_seen, second.graphs_seen);
  ASSERT_EQ(first.applied.size(), second.applied.size());
}

TEST(Search, TwiceEqualsOnce) {
  SearchOptions options = untimed();
  options.alpha = 3;
  for (const Graph& graph : {relu_chain(3), tanh_exp()}) {
    const OptimizeResult once = run(graph, options);
    const OptimizeResult twice = run(once.graph, options);
    EXPECT_EQ(once.graph.hash(), twice.graph.hash());
    EXPECT_TRUE(twice.applied.empty());
  }
}

TEST(Options, EnabledRulesAreTheOnlyOnes) {
  SearchOptions options = untimed();
  options.enabled_rules = {"uphill", "downhill"};
  options.alpha = 3;
  EXPECT_EQ(run(relu_chain(2), options).after.kernels, 6);
  EXPECT_EQ(run(tanh_exp(), options).after.kernels, 1);
}

struct BadOptions {
  std::string name;
  SearchOptions options = untimed();
  std::string part;  // of the error
};
std::ostream& operator<<(std::ostream& out, const BadOptions& row) { return out << row.name; }

SearchOptions with_names(std::vector<std::string> disabled, std::vector<std::string> enabled,
                         std::vector<std::string> passes) {
  SearchOptions options = untimed();
  options.disabled_rules = std::move(disabled);
  options.enabled_rules = std::move(enabled);
  options.disabled_passes = std::move(passes);
  return options;
}

class BadOptionsTest : public testing::TestWithParam<BadOptions> {};

TEST_P(BadOptionsTest, AreAnErrorThatNamesThem) {
  CountCost costs;
  const auto result = optimize(relu_chain(1), rules_in(kSearchRules), costs, GetParam().options);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find(GetParam().part), std::string::npos) << result.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadOptionsTest,
    testing::Values(BadOptions{"UnknownDisabledRule", with_names({"relu-twin"}, {}, {}), "`relu-twin`"},
                    BadOptions{"UnknownEnabledRule", with_names({}, {"downhil"}, {}), "`downhil`"},
                    BadOptions{"UnknownPass", with_names({}, {}, {"fold-constant"}), "fold-constants"}),
    [](const testing::TestParamInfo<BadOptions>& info) { return info.param.name; });

TEST(Search, TellsOfEachImprovement) {
  std::vector<Improvement> found;
  SearchOptions options = without_uphill();
  options.improved = [&](const Improvement& improvement) { found.push_back(improvement); };
  const OptimizeResult result = run(relu_chain(3), options);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].step, 0);
  EXPECT_EQ(found[0].after_ms, result.before.time_ms);
  EXPECT_EQ(found[1].rule, "relu-twice");
  EXPECT_EQ(found[1].times, 3);
  EXPECT_EQ(found[1].nodes.size(), 6U);
  EXPECT_EQ(found[1].before_ms, result.before.time_ms);
  EXPECT_EQ(found[1].after_ms, result.after.time_ms);
}

TEST(Search, CountsWhatBecameOfEachTrial) {
  SearchOptions options = untimed();
  options.alpha = 3;
  const OptimizeResult result = run(tanh_exp(), options);
  ASSERT_FALSE(result.trials.empty());
  long tried = 0;
  for (const RuleTrials& trials : result.trials) {
    tried += trials.tried;
    EXPECT_EQ(trials.tried, trials.did_not_fit + trials.too_dear + trials.known + trials.kept) << trials.rule;
    EXPECT_LE(trials.improved, trials.kept) << trials.rule;
    EXPECT_EQ(trials.improved, trials.rule == "downhill" ? 1 : 0) << trials.rule;
  }
  EXPECT_EQ(tried, result.rules_tried) << "nothing here is tried together";
}

TEST(Search, ProgressSaysWhatIsCurrentBestTriedAndLeft) {
  std::vector<std::string> lines;
  SearchOptions options = without_uphill();
  options.budget_seconds = 3600;
  options.progress = [&](const std::string& line) { lines.push_back(line); };
  run(relu_chain(2), options);
  ASSERT_FALSE(lines.empty());
  for (const char* word : {"step 1: current 6.0000 ms, best 4.0000 ms, ", " rules tried, ", " s left"})
    EXPECT_NE(lines[0].find(word), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace gopt
