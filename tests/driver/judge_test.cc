// Which model becomes the ONNX file: by a runtime's cost, and by its times where there are some (here made up).
#include <gtest/gtest.h>

#include <algorithm>

#include "gopt/driver.h"
#include "gopt/kernel_costs.h"
#include "gopt/rule.h"
#include "gopt/text.h"

namespace gopt {
namespace {

Graph graph_of(const std::string& text) {
  auto graph = parse_graph("graph g\n" + text + "\nend");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return *graph;
}

const std::vector<RewriteRule>& core_rules() {
  static const std::vector<RewriteRule> rules = [] {
    auto database = load_rules(GOPT_SHIPPED_RULES "/core.rules");
    EXPECT_TRUE(database.ok()) << (database.ok() ? "" : database.error().message);
    return database->rules;
  }();
  return rules;
}

// Two rewrites that have nothing to do with each other.
Graph two_products_and_a_relu() {
  return graph_of(
      "input x : f32[64,96]\ninput u : f32[96,128]\ninput v : f32[96,128]\np = MatMul(x, u)\nq = MatMul(x, v)\ns = "
      "Add(p, q)\nr = Relu(s)\nt = Relu(r)\noutput y = t");
}

int count_of(const Graph& graph, OpKind op) {
  return static_cast<int>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const NodePtr& n) { return n->is(op); }));
}

// Times as a function of the graph; `swings` is added and taken away in turns.
class MadeUpTimer : public ModelTimer {
 public:
  explicit MadeUpTimer(std::function<double(const Graph&)> ms, double swings = 0)
      : ms_(std::move(ms)), swings_(swings) {}
  std::string name() const override { return "made up"; }
  Result<std::vector<std::vector<double>>> time(const std::vector<Graph>& graphs) override {
    std::vector<std::vector<double>> times;
    for (size_t k = 0; k < graphs.size(); k++) {
      times.emplace_back();
      for (int round = 0; round < 9; round++)
        times.back().push_back(ms_(graphs[k]) + ((round + static_cast<int>(k)) % 2 ? swings_ : -swings_));
    }
    asked += 1;
    return times;
  }
  int asked = 0;

 private:
  std::function<double(const Graph&)> ms_;
  double swings_;
};

DriverOptions options_with(std::shared_ptr<ModelTimer> timer) {
  DriverOptions options;
  options.target.kind = TargetKind::Onnx;
  options.search.max_steps = 50;
  options.search.allowed_marks.finite_only = true;  // the distributive law
  options.wants_onnx = true;
  options.timer = std::move(timer);
  return options;
}

int products(const Graph& graph) { return count_of(graph, OpKind::MatMul) + count_of(graph, OpKind::Gemm); }
double per_product(const Graph& graph) { return 1.0 + products(graph); }

TEST(Judge, WhatTheRuntimeRunsFasterIsKept) {
  const auto outcome =
      optimize_graph(two_products_and_a_relu(), core_rules(), options_with(std::make_shared<MadeUpTimer>(per_product)));
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_EQ(products(outcome->onnx_graph()), 1);
  ASSERT_TRUE(outcome->runtime_times);
  EXPECT_EQ(outcome->runtime_times->runtime, "made up");
  EXPECT_EQ(outcome->runtime_times->kept, "a rewritten model");
  EXPECT_DOUBLE_EQ(outcome->runtime_times->before_ms, 3);
  EXPECT_DOUBLE_EQ(outcome->runtime_times->after_ms, 2);
  EXPECT_DOUBLE_EQ(outcome->runtime_times->speedup, 1.5);
  EXPECT_TRUE(outcome->check.passed);
}

TEST(Judge, WhatTheRuntimeRunsSlowerIsNot) {
  const auto slower = [](const Graph& graph) { return 10.0 - products(graph); };
  const auto outcome =
      optimize_graph(two_products_and_a_relu(), core_rules(), options_with(std::make_shared<MadeUpTimer>(slower)));
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_EQ(products(outcome->onnx_graph()), 2);
  EXPECT_NE(outcome->runtime_times->kept, "");
}

TEST(Judge, AGainWithinTheNoiseIsNone) {
  const auto barely = [](const Graph& graph) { return 1000 + per_product(graph); };
  for (const double swings : {0.0, 200.0}) {
    const auto outcome = optimize_graph(two_products_and_a_relu(), core_rules(),
                                        options_with(std::make_shared<MadeUpTimer>(barely, swings)));
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    EXPECT_EQ(outcome->runtime_times->kept, "the original");
    EXPECT_EQ(outcome->onnx_graph().hash(), two_products_and_a_relu().hash());
    EXPECT_GE(outcome->runtime_times->noise, swings == 0 ? 0.01 : 0.05);
  }
}

TEST(Judge, ARuleThatOnlyTheRuntimeKnowsToBeSlowIsLeftOut) {
  // One relu is slower than two, as it were.
  const auto likes_relus = [](const Graph& graph) { return per_product(graph) + 3.0 - count_of(graph, OpKind::Relu); };
  const auto outcome =
      optimize_graph(two_products_and_a_relu(), core_rules(), options_with(std::make_shared<MadeUpTimer>(likes_relus)));
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_EQ(products(outcome->onnx_graph()), 1);
  EXPECT_EQ(count_of(outcome->onnx_graph(), OpKind::Relu), 2);
  EXPECT_GE(outcome->runtime_times->candidates, 2);
}

TEST(Judge, AnUnchangedModelIsNotTimed) {
  const auto timer = std::make_shared<MadeUpTimer>(per_product);
  const auto outcome =
      optimize_graph(graph_of("input x : f32[4,4]\nr = Relu(x)\noutput y = r"), core_rules(), options_with(timer));
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_EQ(timer->asked, 0);
  EXPECT_EQ(outcome->runtime_times->kept, "the original");
}

class BrokenTimer : public ModelTimer {
 public:
  std::string name() const override { return "broken"; }
  Result<std::vector<std::vector<double>>> time(const std::vector<Graph>&) override { return Error{"it burns"}; }
};

TEST(Judge, ATimerThatFailsIsAnError) {
  const auto outcome =
      optimize_graph(two_products_and_a_relu(), core_rules(), options_with(std::make_shared<BrokenTimer>()));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().message, "it burns");
}

// A normalization that our loops take in with what is around it, and that costs a runtime more in pieces.
Graph normalization_before_convolution() {
  std::string text = "input x : f32[1,8,16,16]\nconstant k = f32[8,8,1,1] {";
  for (int i = 0; i < 64; i++) text += (i ? "," : "") + std::to_string(i % 5 - 2);
  text += "}\n";
  for (const std::string name : {"scale", "shift", "mean", "variance"})
    text += "constant " + name + " = f32[8] {1,2,3,1,2,3,1,2}\n";
  return graph_of(text +
                  "b = BatchNormalization(x, scale, shift, mean, variance)\nr = Relu(b)\nc = Conv(r, k)\noutput y = c");
}

TEST(OnnxFile, IsTheCodesGraphUnlessThatIsDearerToARuntime) {
  for (const Graph& graph : {two_products_and_a_relu(), normalization_before_convolution()}) {
    DriverOptions options = options_with(nullptr);
    options.target.kind = TargetKind::Cpu;
    options.wants_code = true;
    options.times_code = false;
    const auto outcome = optimize_graph(graph, core_rules(), options);
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    const auto oracle = runtime_cost_oracle({});
    EXPECT_LE(oracle->estimate(outcome->onnx_graph()).time_ms, oracle->estimate(graph).time_ms);
    EXPECT_LE(oracle->estimate(outcome->onnx_graph()).kernels, oracle->estimate(graph).kernels);
    const bool is_dearer = oracle->estimate(outcome->result.graph).time_ms > oracle->estimate(graph).time_ms;
    EXPECT_EQ(outcome->onnx != nullptr, is_dearer);
    EXPECT_EQ(outcome->plan->graph.hash(), outcome->result.graph.hash());
  }
}

// LayerNormalization has a node from opset 17 on; before, it would be written in pieces again.
TEST(OnnxFile, HasNoOperatorThatItsOpsetLacks) {
  const auto folds = load_rules(GOPT_SHIPPED_RULES "/folds.rules");
  ASSERT_TRUE(folds.ok());
  const Graph pieces = graph_of(
      "input x : f32[1,128,768]\ninput g : f32[768]\ninput b : f32[768]\nconstant two = f32[] {2}\nconstant eps = "
      "f32[] {1e-05}\n"
      "m = ReduceMean(x) {axes=[2]}\nd = Sub(x, m)\np = Pow(d, two)\nv = ReduceMean(p) {axes=[2]}\n"
      "e = Add(v, eps)\ns = Sqrt(e)\nq = Div(d, s)\nr = Mul(q, g)\nz = Add(r, b)\noutput y = z");
  for (const int64_t opset : {13, 17}) {
    Metadata metadata;
    metadata.opsets[""] = opset;
    const Graph graph(pieces.inputs(), pieces.outputs(), metadata);
    const auto outcome = optimize_graph(graph, folds->rules, options_with(nullptr));
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    EXPECT_EQ(count_of(outcome->onnx_graph(), OpKind::LayerNormalization), opset < 17 ? 0 : 1) << opset;
  }
}

}  // namespace
}  // namespace gopt
