// Printing and parsing are inverses, the content hash ignores names and proofs, and update_rules_text changes what a
// verification found and nothing else.
#include <gtest/gtest.h>

#include "gopt/rule.h"
#include "rules.h"

namespace gopt {
namespace {

constexpr const char* kRule = R"(# a comment before
rule scaled-sum
  var x f32[...,m,2*k+1]   # an activation
  var u f32[2*k+1,n] weight
  float eps
  left
    constant c = f32[2] {1.0, -inf}
    e = FillLike(u) {value=$eps}
    v = Mul(u, e)
    y = MatMul(x, v)
    return y
  right
    y = MatMul(x, u)
    e = FillLike(y) {value=$eps}
    z = Mul(y, e)
    return z
  when m >= 1 and (k < 3 or n % 2 == 0)
  marks reassociates
  origin generator seed=1 max-ops=2 family=dense
  proof definitions="abc" obligations=7 solver="z3 4.8.12" digest="00ff" rule="1234"
end
)";

TEST(RuleText, ReadsEveryPart) {
  const std::vector<RewriteRule> rules = rules_in(kRule);
  ASSERT_EQ(rules.size(), 1u);
  const RewriteRule& rule = rules[0];
  EXPECT_EQ(rule.name, "scaled-sum");
  ASSERT_EQ(rule.variables.size(), 2u);
  EXPECT_TRUE(rule.variables[0].has_prefix);
  EXPECT_EQ(to_string(rule.variables[0].type), "f32[m,2*k+1]");
  EXPECT_EQ(rule.variables[1].kind, VariableKind::Weight);
  EXPECT_EQ(float_variables(rule), std::vector<std::string>{"eps"});
  EXPECT_TRUE(rule.marks.reassociates);
  EXPECT_FALSE(rule.marks.finite_only);
  EXPECT_EQ(rule.origin, "generator seed=1 max-ops=2 family=dense");
  ASSERT_TRUE(rule.proof.has_value());
  EXPECT_EQ(*rule.proof, (ProofRecord{"abc", 7, "z3 4.8.12", "00ff", "1234"}));
}

class RuleFile : public ::testing::TestWithParam<const char*> {};
TEST_P(RuleFile, PrintedRulesParseToThemselves) {
  for (const RewriteRule& rule : rules_of_file(GetParam())) {
    const std::string printed = print_rule(rule);
    const std::vector<RewriteRule> again = rules_in(printed);
    ASSERT_EQ(again.size(), 1u) << printed;
    EXPECT_EQ(print_rule(again[0]), printed);
    EXPECT_EQ(again[0].left.hash(), rule.left.hash()) << printed;
    EXPECT_EQ(again[0].right.hash(), rule.right.hash()) << printed;
    EXPECT_TRUE(again[0].condition == rule.condition) << printed;
    EXPECT_EQ(again[0].proof, rule.proof);
    EXPECT_EQ(again[0].marks, rule.marks);
    EXPECT_EQ(again[0].content_hash(), rule.content_hash());
  }
}
INSTANTIATE_TEST_SUITE_P(Files, RuleFile,
                         ::testing::Values(GOPT_SHIPPED_RULES "/hand.rules", GOPT_SHIPPED_RULES "/core.rules",
                                           GOPT_SHIPPED_RULES "/ranks.rules", GOPT_SHIPPED_RULES "/elementwise.rules",
                                           GOPT_SHIPPED_RULES "/siblings.rules",
                                           GOPT_VERIFIER_RULES "/ranks_false.rules", GOPT_VERIFIER_RULES "/true.rules",
                                           GOPT_VERIFIER_RULES "/false.rules"));

TEST(RuleText, ContentHashIsOfTheContent) {
  RewriteRule rule = rules_in(kRule)[0];
  const std::string hash = rule.content_hash();
  rule.name = "other";
  rule.origin = "hand";
  rule.proof.reset();
  EXPECT_EQ(rule.content_hash(), hash);
  rule.condition = Cond();
  EXPECT_NE(rule.content_hash(), hash);
}

TEST(RuleText, UpdateKeepsWhatIsWritten) {
  std::vector<RewriteRule> rules = rules_in(kRule);
  EXPECT_EQ(rules_in(update_rules_text(kRule, rules))[0].proof, rules[0].proof);
  rules[0].proof = ProofRecord{"new", 1, "z3", "ff", "ee"};
  rules[0].marks = {};
  const std::string updated = update_rules_text(kRule, rules);
  EXPECT_NE(updated.find("# a comment before"), std::string::npos);
  EXPECT_NE(updated.find("# an activation"), std::string::npos);
  EXPECT_EQ(updated.find("marks"), std::string::npos);
  EXPECT_EQ(rules_in(updated)[0].proof, rules[0].proof);
  EXPECT_TRUE(rules_in(updated)[0].condition == rules[0].condition);
  EXPECT_EQ(update_rules_text(updated, rules), updated);
}

TEST(RuleText, UpdateLeavesOtherRulesAlone) { EXPECT_EQ(update_rules_text(kRule, {}), kRule); }

}  // namespace
}  // namespace gopt
