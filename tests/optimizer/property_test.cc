// Random graphs, rewritten by every rule that gopt ships under costs that are random too, so that all kinds of rewrites
// are taken, compute what they computed before.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "anything_else.h"
#include "count_cost.h"
#include "gopt/interpreter.h"
#include "gopt/text.h"
#include "instance.h"
#include "random_graph.h"
#include "rules.h"

namespace gopt {
namespace {

// The cost of a graph is drawn from its hash: any rewrite may look good.
class RandomCost : public CostOracle {
 public:
  Cost estimate(const Graph& graph) override {
    Cost cost;
    cost.time_ms = 1 + static_cast<double>(graph.hash().low % 1000) / 1000;
    return cost;
  }
};

std::vector<RewriteRule> shipped_rules() {
  std::vector<RewriteRule> rules;
  for (const auto& entry : std::filesystem::directory_iterator(GOPT_RULES_DIR)) {
    if (entry.path().extension() != ".rules") continue;
    for (const RewriteRule& rule : rules_of_file(entry.path()))
      if (rule.proof && !rule.is_partial()) rules.push_back(rule);
  }
  return rules;
}

// Elements between 0.5 and 1.5, where the functions that rules are about are defined; of few digits, so that sums and
// products of them are exact, and what is 0 over the reals is no rounding error.
std::map<std::string, Tensor> positive_inputs(std::mt19937_64& random, const Graph& graph) {
  std::map<std::string, Tensor> inputs = random_inputs(random, graph);
  for (auto& [name, tensor] : inputs) {
    if (!is_floating(tensor.type())) continue;
    std::vector<double> values = tensor.to_doubles();
    for (double& value : values) value = 1 + std::round(value * 128) / 256;
    tensor = Tensor::from_values(tensor.type(), tensor.dims(), values);
  }
  return inputs;
}

// The largest difference relative to the largest magnitude; nothing where a value is not finite.
std::optional<double> difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); i++) {
    const auto x = a[i].to_doubles(), y = b[i].to_doubles();
    double scale = 1e-3;
    for (double value : x) {
      if (!std::isfinite(value)) return std::nullopt;
      scale = std::max(scale, std::abs(value));
    }
    for (size_t k = 0; k < x.size(); k++) {
      if (!std::isfinite(y[k])) return std::numeric_limits<double>::infinity();
      worst = std::max(worst, std::abs(x[k] - y[k]) / scale);
    }
  }
  return worst;
}

class Property : public testing::Test {
 protected:
  static void SetUpTestSuite() { rules_ = new std::vector<RewriteRule>(shipped_rules()); }
  static void TearDownTestSuite() {
    delete rules_;
    rules_ = nullptr;
  }
  static std::vector<RewriteRule>* rules_;
  std::string not_applied_;
};
std::vector<RewriteRule>* Property::rules_ = nullptr;

// Each shipped rule finds its own left side, for random sizes, and what it makes of it computes the same.
TEST_F(Property, EveryRuleRewritesItsOwnLeftSide) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  size_t instances = 0, applied = 0;
  for (const RewriteRule& rule : *rules_) {
    const auto graph = random_instance(random, rule);
    if (!graph) continue;
    instances++;
    AnythingElse costs;
    SearchOptions options = untimed();
    options.max_steps = 1;
    options.enabled_rules = {rule.name};  // whatever its marks
    options.disabled_passes = pass_names();
    const auto result = optimize(*graph, {rule}, costs, options);
    ASSERT_TRUE(result.ok()) << result.error().message;
    applied += result->applied.empty() ? 0 : 1;
    const auto inputs = positive_inputs(random, *graph);
    const auto before = interpret(*graph, inputs), after = interpret(result->graph, inputs);
    ASSERT_TRUE(before.ok()) << rule.name << ": " << before.error().message << "\n" << print_graph(*graph);
    ASSERT_TRUE(after.ok()) << rule.name << ": " << after.error().message << "\n" << print_graph(result->graph);
    const auto worst = difference(*before, *after);
    EXPECT_LE(worst.value_or(0), 1e-4) << rule.name << "\n"
                                       << print_graph(*graph) << "became\n"
                                       << print_graph(result->graph);
    if (result->applied.empty()) not_applied_ += rule.name + "\n";
  }
  RecordProperty("rules", static_cast<int>(rules_->size()));
  RecordProperty("instances", static_cast<int>(instances));
  // Few have no small instance; of some instances both sides are one graph.
  EXPECT_GE(instances * 20, rules_->size() * 19);
  EXPECT_GE(applied * 20, instances * 19) << not_applied_;
}

TEST_F(Property, RewritesComputeTheSame) {
  ASSERT_FALSE(rules_->empty()) << "no proved rule in " << GOPT_RULES_DIR;
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::set<std::string> names, used;
  for (const RewriteRule& rule : *rules_) names.insert(rule.name);
  int compared = 0;
  for (int trial = 0; trial < 60; trial++) {
    // Left sides of rules are where rules meet; random graphs are where they meet what nobody thought of.
    const auto instance = random_instance(random, (*rules_)[random() % rules_->size()]);
    const Graph graph = instance && trial % 2 ? *instance : random_graph(random, 4 + static_cast<int>(random() % 8));
    RandomCost costs;
    SearchOptions options = untimed();
    options.alpha = 2;
    options.max_steps = 40;
    if (trial % 3 == 0) options.search = SearchKind::Saturation;
    const auto result = optimize(graph, *rules_, costs, options);
    ASSERT_TRUE(result.ok()) << result.error().message;
    const auto inputs = trial % 2 ? positive_inputs(random, graph) : random_inputs(random, graph);
    const auto before = interpret(graph, inputs), after = interpret(result->graph, inputs);
    ASSERT_TRUE(before.ok()) << before.error().message << "\n" << print_graph(graph);
    ASSERT_TRUE(after.ok()) << after.error().message << "\n" << print_graph(result->graph);
    const auto worst = difference(*before, *after);
    if (!worst) continue;
    compared++;
    std::string applied;
    for (const AppliedRule& step : result->applied) {
      EXPECT_TRUE(names.count(step.rule)) << step.rule;
      used.insert(step.rule);
      applied += step.rule + "\n";
    }
    EXPECT_LE(*worst, 1e-4) << print_graph(graph) << "became\n" << print_graph(result->graph) << "by\n" << applied;
  }
  EXPECT_GE(compared, 40);
  EXPECT_GE(used.size(), 10u);
}

TEST_F(Property, TwiceEqualsOnce) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 20; trial++) {
    const Graph graph = random_graph(random, 8);
    CountCost costs;
    SearchOptions options = untimed();
    options.max_steps = 200;
    const auto once = optimize(graph, *rules_, costs, options);
    ASSERT_TRUE(once.ok()) << once.error().message;
    if (once->stop_reason != StopReason::Saturated) continue;
    const auto twice = optimize(once->graph, *rules_, costs, options);
    ASSERT_TRUE(twice.ok()) << twice.error().message;
    EXPECT_EQ(once->after.time_ms, twice->after.time_ms) << print_graph(once->graph) << "became\n"
                                                         << print_graph(twice->graph);
  }
}

}  // namespace
}  // namespace gopt
