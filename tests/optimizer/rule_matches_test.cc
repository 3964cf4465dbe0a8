// Which rules match at a node, and what each would bring.
#include "gopt/rule_matches.h"

#include <gtest/gtest.h>

#include "count_cost.h"
#include "gopt/node_names.h"
#include "gopt/text.h"
#include "rules.h"

namespace gopt {
namespace {

const char* const kRules = R"(
rule relu-twice
  var x f32[...]
  left
    a = Relu(x)
    b = Relu(a)
    return b
  right
    c = Relu(x)
    return c
end
rule uphill
  var x f32[...]
  left
    a = Relu(x)
    return a
  right
    a = Neg(x)
    b = Neg(a)
    c = Relu(b)
    return c
end
rule marked
  var x f32[...]
  left
    a = Relu(x)
    b = Relu(a)
    return b
  right
    return x
  marks finite-only
end
rule elsewhere
  var x f32[...]
  left
    a = Exp(x)
    b = Relu(a)
    return b
  right
    a = Exp(x)
    return a
end
)";

Graph graph_of(const std::string& text) {
  auto graph = parse_graph("graph g\n" + text + "\nend");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return *graph;
}

MatchesAtNode matches(const Graph& graph, const std::string& name, const SearchOptions& options = {}) {
  CountCost costs;
  auto found = matches_at(graph, *find_node(graph, name), rules_in(kRules), costs, options);
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message);
  return found.ok() ? *found : MatchesAtNode();
}

const RuleMatch* match_of(const MatchesAtNode& found, const std::string& rule) {
  for (const RuleMatch& match : found.rules)
    if (match.rule == rule) return &match;
  return nullptr;
}

const char* const kReluTwice = "input x : f32[4]\na = Relu(x)\nb = Relu(a)\nc = Exp(b)\nd = Relu(c)\noutput y = d";

TEST(RuleMatches, EachIsPricedByWhatItMakesOfTheWholeGraph) {
  const MatchesAtNode found = matches(graph_of(kReluTwice), "a");
  EXPECT_EQ(found.before_ms, 4);
  const RuleMatch* twice = match_of(found, "relu-twice");
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->nodes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(twice->after_ms, 3);
  EXPECT_EQ(twice->gain_ms, 1);
  EXPECT_TRUE(twice->is_gain);
  const RuleMatch* uphill = match_of(found, "uphill");
  ASSERT_TRUE(uphill);
  EXPECT_EQ(uphill->after_ms, 6);
  EXPECT_FALSE(uphill->is_gain);
  EXPECT_FALSE(match_of(found, "elsewhere"));
  EXPECT_TRUE(match_of(matches(graph_of(kReluTwice), "d"), "elsewhere"));
}

TEST(RuleMatches, SaysWhichMarksHaveToBeAllowed) {
  const MatchesAtNode found = matches(graph_of(kReluTwice), "b");
  ASSERT_TRUE(match_of(found, "marked"));
  EXPECT_TRUE(match_of(found, "marked")->not_allowed.finite_only);
  SearchOptions allowed;
  allowed.allowed_marks.finite_only = true;
  const MatchesAtNode with = matches(graph_of(kReluTwice), "b", allowed);
  EXPECT_EQ(match_of(with, "marked")->not_allowed, RuleMarks{});
}

TEST(RuleMatches, SaysWhatIsSwitchedOff) {
  SearchOptions options;
  options.disabled_rules = {"relu-twice"};
  const MatchesAtNode found = matches(graph_of(kReluTwice), "a", options);
  EXPECT_TRUE(match_of(found, "relu-twice")->is_disabled);
  EXPECT_FALSE(match_of(found, "uphill")->is_disabled);
}

TEST(RuleMatches, ANodeThatAPassTakesAwayIsFollowedSoFar) {
  const Graph graph = graph_of("input x : f32[4]\na = Identity(x)\nb = Relu(a)\nc = Relu(b)\noutput y = c");
  const MatchesAtNode gone = matches(graph, "a");
  EXPECT_EQ(gone.taken_by, "drop-identities");
  EXPECT_TRUE(gone.rules.empty());
  // Its user is made again over another input, and is still itself.
  const MatchesAtNode kept = matches(graph, "b");
  EXPECT_EQ(kept.taken_by, "");
  EXPECT_TRUE(match_of(kept, "relu-twice"));
}

}  // namespace
}  // namespace gopt
