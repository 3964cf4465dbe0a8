// What a PatternSet hands out is all that matches: it only leaves out what a graph lacks operators for.
#include "matching/pattern_set.h"

#include <gtest/gtest.h>

#include <map>

#include "gopt/text.h"
#include "instance.h"
#include "matching/rule_selection.h"
#include "random_graph.h"

namespace gopt::optimizer {
namespace {

const std::vector<RewriteRule>& shipped_rules() {
  static const std::vector<RewriteRule> rules = [] {
    std::vector<RewriteRule> all;
    for (const char* file : {"hand.rules", "ranks.rules", "core.rules"}) {
      const auto database = load_rules(std::string(GOPT_RULES_DIR) + "/" + file);
      EXPECT_TRUE(database.ok()) << file;
      if (database.ok()) all.insert(all.end(), database->rules.begin(), database->rules.end());
    }
    return all;
  }();
  return rules;
}

// Rules with the number of places where they match.
std::map<std::string, size_t> matches(const MatchIndex& index, const std::vector<const Pattern*>& patterns) {
  std::map<std::string, size_t> counts;
  for (const Pattern* pattern : patterns)
    if (const size_t count = find_bindings(index, *pattern).size()) counts[pattern->rule_name] += count;
  return counts;
}

TEST(PatternSet, LosesNoMatch) {
  const std::vector<RewriteRule>& rules = shipped_rules();
  ASSERT_GT(rules.size(), 500U);
  constexpr int kMaxRank = 5;
  SearchOptions options;
  for (const RewriteRule& rule : rules) options.enabled_rules.push_back(rule.name);  // whatever their marks
  const auto set = PatternSet::make(rules, options, kMaxRank);
  ASSERT_TRUE(set.ok()) << set.error().message;
  std::vector<Pattern> all;
  for (const RewriteRule& rule : rules) {
    auto compiled = compile_rule(rule, kMaxRank);
    if (!compiled.ok()) continue;
    for (Pattern& pattern : *std::move(compiled)) {
      limit(pattern, options.allowed_marks, true);
      all.push_back(std::move(pattern));
    }
  }
  std::vector<const Pattern*> every;
  for (const Pattern& pattern : all) every.push_back(&pattern);

  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  size_t matched = 0, offered = 0;
  for (int trial = 0; trial < 60; trial++) {
    const auto instance = random_instance(random, rules[random() % rules.size()]);
    const Graph graph = instance && trial % 3 ? *instance : random_graph(random, 12);
    if (max_rank(graph) > kMaxRank) continue;
    const MatchIndex index(graph);
    const std::vector<const Pattern*> some = set->patterns_for(index);
    offered += some.size();
    const auto expected = matches(index, every);
    EXPECT_EQ(matches(index, some), expected) << print_graph(graph);
    matched += expected.size();
  }
  EXPECT_GT(matched, 60U);
  EXPECT_LT(offered, 60 * every.size() / 4);  // of the patterns, most are left out
}

TEST(PatternSet, RanksOfOperatorsCount) {
  const auto rules = parse_rules(R"(
rule relu-twice
  var x f32[a, b]
  left
    p = Relu(x)
    q = Relu(p)
    return q
  right
    r = Relu(x)
    return r
end
)",
                                 "t.rules");
  ASSERT_TRUE(rules.ok());
  const auto set = PatternSet::make(*rules, {}, 4);
  ASSERT_TRUE(set.ok());
  const auto graph = [](const std::string& shape) {
    auto parsed =
        parse_graph("graph g\n  input x : f32" + shape + "\n  a = Relu(x)\n  b = Relu(a)\n  output y = b\nend\n");
    EXPECT_TRUE(parsed.ok());
    return *parsed;
  };
  EXPECT_EQ(set->patterns_for(MatchIndex(graph("[2, 3]"))).size(), 1U);
  EXPECT_EQ(set->patterns_for(MatchIndex(graph("[2, 3, 4]"))).size(), 0U);
}

}  // namespace
}  // namespace gopt::optimizer
