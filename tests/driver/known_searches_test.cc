// Searches that are kept with the times.
#include "known_searches.h"

#include <gtest/gtest.h>

#include <set>

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
    all.insert(search_signature(g, target, some, options));
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
  EXPECT_EQ(search_signature(graph, {}, *rules, {}), search_signature(graph, {}, *rules, {.workers = 3}));
}

}  // namespace
}  // namespace gopt::driver
