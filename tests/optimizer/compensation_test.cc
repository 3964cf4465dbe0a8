// Sums that measure their own rounding are left as they are, whatever rules there are.
#include "matching/compensation.h"

#include <gtest/gtest.h>

#include "count_cost.h"
#include "gopt/interpreter.h"
#include "gopt/rule.h"
#include "gopt/text.h"

namespace gopt {
namespace {

struct Row {
  const char* name;
  const char* text;
  std::vector<const char*> found;  // values that are part of it, in order
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

Graph graph_of(const std::string& text) {
  auto graph =
      parse_graph("graph g\ninput x : f32[4]\ninput u : f32[4]\ninput v : f32[4]\ninput w : f32[4]\n" + text + "\nend");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return *graph;
}

class Compensation : public testing::TestWithParam<Row> {};

// Numbers whose sum no single precision number is.
std::map<std::string, Tensor> inputs() {
  const auto tensor = [](std::vector<double> values) {
    return Tensor::from_values<double>(ElementType::Float32, {4}, values);
  };
  return {{"x", tensor({16777216, 16777216, 1e8, 0.1})},
          {"u", tensor({1, 3, -7, 1e9})},
          {"v", tensor({1, -16777216, 3, 0.3})},
          {"w", tensor({16777216, 0, -1e8, -1e9})}};
}

TEST_P(Compensation, IsSeen) {
  const Graph graph = graph_of(GetParam().text);
  const std::vector<bool> found = optimizer::compensated_nodes(graph);
  EXPECT_EQ(static_cast<size_t>(std::count(found.begin(), found.end(), true)), GetParam().found.size());
  for (const char* name : GetParam().found) {
    // Values have no names: the value is found as an output of its own.
    const Graph one = graph_of(std::string(GetParam().text) + "\noutput probe = " + name);
    const std::vector<bool> marked = optimizer::compensated_nodes(one);
    EXPECT_TRUE(marked[static_cast<uint32_t>(one.id_of(one.outputs().back().value.node))]) << name;
  }
}

TEST_P(Compensation, KeepsItsValues) {
  if (GetParam().found.empty()) return;  // others may be put into another order
  const auto core = load_rules(GOPT_RULES_DIR "/core.rules");
  ASSERT_TRUE(core.ok());
  const Graph graph = graph_of(GetParam().text);
  SearchOptions options = untimed();
  options.alpha = 1.5;
  options.max_steps = 40;
  CountCost costs;
  const auto result = optimize(graph, core->rules, costs, options);
  ASSERT_TRUE(result.ok()) << result.error().message;
  const auto before = interpret(graph, inputs()), after = interpret(result->graph, inputs());
  ASSERT_TRUE(before.ok() && after.ok());
  for (size_t o = 0; o < before->size(); o++) EXPECT_EQ((*before)[o].to_doubles(), (*after)[o].to_doubles());
}

INSTANTIATE_TEST_SUITE_P(
    Sums, Compensation,
    testing::Values(
        Row{"TwoSum",
            "s = Add(x, u)\nb = Sub(s, x)\na = Sub(s, b)\nd = Sub(x, a)\nf = Sub(u, b)\ne = Add(d, f)\noutput s = "
            "s\noutput "
            "e = e",
            {"s", "b", "a", "d", "f", "e"}},
        Row{"FastTwoSumAdded",
            "s = Add(x, u)\nt = Sub(s, x)\ne = Sub(u, t)\nd = Add(s, v)\ny = Add(d, e)\noutput y = y",
            {"s", "t", "e", "y"}},
        Row{"FastTwoSumTakenAway",
            "s = Add(x, u)\nt = Sub(s, x)\ne = Sub(u, t)\nd = Sub(s, v)\ny = Add(d, e)\noutput y = y",
            {"s", "t", "e", "y"}},
        Row{"KahansSum",
            "t = Add(x, u)\nd = Sub(t, x)\nc = Sub(d, u)\ny = Sub(v, c)\nz = Add(t, y)\nr = Sub(z, w)\noutput r = r",
            {"t", "d", "c", "y", "z"}},
        Row{"WithNegations",
            "n = Neg(x)\ns = Add(u, x)\nt = Add(s, n)\ne = Sub(u, t)\ny = Add(s, e)\noutput y = y",
            {"s", "t", "e", "y"}},
        Row{"Split",
            "constant c = f32[] {4097}\ns = Mul(x, c)\nd = Sub(s, x)\nh = Sub(s, d)\noutput h = h",
            {"s", "d", "h"}},
        Row{"RoundedByALargeNumber",
            "constant c = f32[] {12582912}\ns = Add(x, c)\nt = Sub(s, c)\ny = Add(t, u)\noutput y = y",
            {"s", "t", "y"}},
        Row{"OrdinarySums", "a = Add(x, u)\nb = Add(a, v)\nc = Sub(b, w)\nd = Add(c, a)\noutput y = d", {}},
        Row{"Gate", "a = Mul(x, u)\nb = Add(a, x)\nc = Sub(b, v)\noutput y = c", {}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gopt
