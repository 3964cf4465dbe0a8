// Searches that are kept with the times.
#include "known_searches.h"

#include <gtest/gtest.h>

#include <set>

#include "gopt/kernel_spec.h"
#include "gopt/text.h"

namespace gopt::driver {
namespace {

TEST(KnownSearches, AreReadAsTheyWereWritten) {
  KnownSearch search;
  search.result = "0123";
  search.trail.before_ms = 0.7;
  search.trail.passes = {{"a-pass", {0, 2}}, {"a-pass", {}}};
  search.trail.windows = {
      {0, 2, {{{{"a-rule", {1, 2, 3}, 0}, {"other", {7}, 1}}, 0.1, 0.3}, {{{"a-rule", {4}, 0}}, 1, 2}}}, {-1, -1, {}}};
  const auto read = parse_known_search(to_text(search));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->result, search.result);
  EXPECT_EQ(read->rules, (std::vector<std::string>{"a-rule", "other"}));
  EXPECT_EQ(read->trail.before_ms, 0.7);
  ASSERT_EQ(read->trail.passes.size(), 2u);
  EXPECT_EQ(read->trail.passes[0].kept, (std::vector<uint32_t>{0, 2}));
  ASSERT_EQ(read->trail.windows.size(), 2u);
  EXPECT_EQ(read->trail.windows[0].window, 2);
  ASSERT_EQ(read->trail.windows[0].steps.size(), 2u);
  EXPECT_EQ(read->trail.windows[0].steps[0].matches[1].nodes, (std::vector<uint32_t>{7}));
  EXPECT_EQ(read->trail.windows[0].steps[0].matches[1].choice, 1);
  EXPECT_EQ(read->trail.windows[0].steps[0].before_ms, 0.1);
  EXPECT_EQ(read->trail.windows[0].steps[0].after_ms, 0.3);
  EXPECT_EQ(read->trail.windows[1].sweep, -1);
  EXPECT_EQ(to_text(*read), to_text(search));
  EXPECT_EQ(to_text(search).find('\n'), std::string::npos);
}

TEST(KnownSearches, OtherTextIsNone) {
  for (const char* text : {"", "x", "{}", "[]", R"({"result":1,"before_ms":1,"passes":[],"windows":[]})",
                           R"({"result":"a","before_ms":1,"passes":[],"windows":[[0]]})",
                           R"({"result":"a","before_ms":1,"passes":[],"windows":[[0,0,[[[["r","n",0]],1,1]]]]})",
                           R"({"result":"a","before_ms":1,"passes":[["p"]],"windows":[]})"})
    EXPECT_FALSE(parse_known_search(text)) << text;
}

TEST(KnownSearches, NumbersOutOfRangeAreNone) {
  const auto with = [](const std::string& sweep, const std::string& node, const std::string& choice) {
    return R"({"result":"a","before_ms":1,"passes":[],"windows":[[)" + sweep + R"(,0,[[[["r",[)" + node + "]," +
           choice + "]],1,1]]]]}";
  };
  EXPECT_TRUE(parse_known_search(with("0", "7", "0")));
  EXPECT_TRUE(parse_known_search(with("-1", "7", "0")));
  for (const char* number : {"-2", "1e300", "2147483647", "18446744073709551615", "true", "1.5", "null"}) {
    EXPECT_FALSE(parse_known_search(with(number, "7", "0"))) << number;
    EXPECT_FALSE(parse_known_search(with("0", number, "0"))) << number;
    EXPECT_FALSE(parse_known_search(with("0", "7", number))) << number;
  }
}

// A large one's numbers are no part of a graph's signature, but what may be done to the graph depends on them.
TEST(KnownSearches, AreOfWeightsNumbers) {
  const auto signature = [](double number) {
    GraphBuilder builder;
    const Value x = builder.input("x", {ElementType::Float32, Shape{64, 64}});
    const Value w = builder.constant(
        Tensor::from_values(ElementType::Float32, {64, 64}, std::vector<double>(64 * 64, number)), "w");
    builder.output("y", *builder.apply(OpKind::Add, {x, w}));
    const Graph graph = builder.build();
    return std::pair(graph_signature(graph, {}), search_signature(graph, {}, CostModel::Plan, {}, {}));
  };
  EXPECT_EQ(signature(0).first, signature(5).first);
  EXPECT_NE(signature(0).second, signature(5).second);
  EXPECT_EQ(signature(0).second, signature(0).second);
}

TEST(KnownSearches, AreOfOneGraphTargetRulesAndOptions) {
  const auto graph_of = [](const char* text) { return *parse_graph("graph g\n" + std::string(text) + "\nend"); };
  const Graph graph = graph_of("input x : f32[3]\na = Relu(x)\noutput y = a");
  const auto rules = parse_rules(
      "rule r\n  var x f32[...]\n  left\n    a = Relu(x)\n    b = Relu(a)\n    return b\n  right\n    c = Relu(x)\n    "
      "return c\nend\n",
      "test");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  std::set<std::string> all;
  int count = 0;
  const auto add = [&](const Graph& g, const Target& target, const std::vector<RewriteRule>& some,
                       const SearchOptions& options) {
    all.insert(search_signature(g, target, CostModel::Plan, some, options));
    count++;
  };
  add(graph, {}, *rules, {});
  add(graph_of("input x : f32[4]\na = Relu(x)\noutput y = a"), {}, *rules, {});
  add(graph, {.threads = 2}, *rules, {});
  add(graph, {.without = {"layout:blocked"}}, *rules, {});
  add(graph, {}, {}, {});
  add(graph, {}, *rules, {.search = SearchKind::Greedy});
  add(graph, {}, *rules, {.alpha = 1.1});
  add(graph, {}, *rules, {.budget_seconds = 10});
  add(graph, {}, *rules, {.disabled_rules = {"r"}});
  add(graph, {}, *rules, {.enabled_rules = {"r"}});
  add(graph, {}, *rules, {.allowed_marks = {.finite_only = true}});
  add(graph, {}, *rules, {.disabled_passes = {"r"}});
  EXPECT_EQ(all.size(), static_cast<size_t>(count));
  EXPECT_FALSE(all.contains(search_signature(graph, {}, CostModel::Sum, *rules, {})));
  EXPECT_TRUE(all.contains(search_signature(graph, {}, CostModel::Plan, *rules, {.workers = 3})));
}

}  // namespace
}  // namespace gopt::driver
