// Replacements that a pass offers, by what they cost: of layers alike few are asked about.
#include "passes/not_dearer.h"

#include <gtest/gtest.h>

#include "gopt/text.h"

namespace gopt::optimizer {
namespace {

// One for each node that runs, and what each operator costs beside that.
class Prices : public CostOracle {
 public:
  explicit Prices(std::map<OpKind, double> prices) : prices_(std::move(prices)) {}
  Cost estimate(const Graph& graph) override {
    wholes++;
    return priced(graph);
  }
  Cost estimate_part(const Graph& part) override { return priced(part); }
  int wholes = 0;

 private:
  Cost priced(const Graph& graph) const {
    Cost cost;
    for (const NodePtr& node : graph.nodes()) {
      if (node->is(OpKind::Input) || node->is(OpKind::Constant)) continue;
      const auto own = prices_.find(node->op);
      cost.time_ms += own == prices_.end() ? 1 : own->second;
    }
    return cost;
  }
  std::map<OpKind, double> prices_;
};

Graph layers(int count) {
  std::string text = "graph g\n  input x0 : f32[4,6]\n";
  for (int k = 0; k < count; k++) {
    const std::string n = std::to_string(k), next = std::to_string(k + 1);
    text += "  r" + n + " = Relu(x" + n + ")\n  n" + n + " = Neg(r" + n + ")\n  x" + next + " = Exp(n" + n + ")\n";
  }
  const auto graph = parse_graph(text + "  output y = x" + std::to_string(count) + "\nend\n");
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return *graph;
}

// Each Relu, and each Neg, by what it reads.
Replacements without_both(const Graph& graph) {
  Replacements all;
  for (const NodePtr& node : graph.nodes())
    if (node->is(OpKind::Relu) || node->is(OpKind::Neg)) all.emplace_back(Value{node, 0}, node->inputs[0]);
  return all;
}

TEST(NotDearer, AllTogetherAreAskedAboutFirst) {
  const Graph graph = layers(50);
  Prices prices({});
  EXPECT_EQ(not_dearer(graph, without_both(graph), prices).size(), 100U);
  EXPECT_EQ(prices.wholes, 2);
}

// Here a Neg is so good to have that the graph is dearer without.
TEST(NotDearer, OfKindsThoseThatAre) {
  const Graph graph = layers(50);
  Prices prices({{OpKind::Neg, -3}});
  const Replacements all = without_both(graph);
  const std::vector<uint32_t> kept = not_dearer(graph, all, prices);
  EXPECT_EQ(kept.size(), 50U);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  for (const uint32_t place : kept) EXPECT_TRUE(all[place].first.node->is(OpKind::Relu));
  EXPECT_LE(prices.wholes, 6);
}

// What pays where it stands, but not all of it together: those of one half, or a part of it.
class Crowded : public Prices {
 public:
  explicit Crowded(int most) : Prices({}), most_(most) {}
  Cost estimate(const Graph& graph) override {
    Cost cost = Prices::estimate(graph);
    int missing = 50;
    for (const NodePtr& node : graph.nodes()) missing -= node->is(OpKind::Relu);
    if (missing > most_) cost.time_ms += 1000;
    return cost;
  }

 private:
  int most_;
};

TEST(NotDearer, OfAKindThoseOfAPart) {
  const Graph graph = layers(50);
  Replacements all;
  for (const NodePtr& node : graph.nodes())
    if (node->is(OpKind::Relu)) all.emplace_back(Value{node, 0}, node->inputs[0]);
  for (const int most : {1, 7, 30}) {
    Crowded prices(most);
    const std::vector<uint32_t> kept = not_dearer(graph, all, prices);
    EXPECT_EQ(kept.size(), static_cast<size_t>(most));
    EXPECT_LE(prices.wholes, 25) << most;  // one of them of the graph as it is
  }
}

TEST(NotDearer, NoneIsNone) {
  Prices prices({});
  EXPECT_TRUE(not_dearer(layers(1), {}, prices).empty());
}

}  // namespace
}  // namespace gopt::optimizer
