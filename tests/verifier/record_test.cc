// Records, digests and verdicts depend on the rule alone; prove_rules writes what was found.
#include "rule_files.h"

namespace gopt {
namespace {

TEST(Record, IsTheSameWhateverWasProvedBefore) {
  std::vector<RewriteRule> rules = rules_of_file(GOPT_TEST_RULES "/true.rules");
  rules.resize(12);
  std::vector<RewriteRule> reversed(rules.rbegin(), rules.rend());
  prove_rules(rules);
  prove_rules(reversed);
  for (size_t i = 0; i < rules.size(); i++)
    EXPECT_EQ(rules[i].proof, reversed[rules.size() - 1 - i].proof) << rules[i].name;
}

TEST(Record, ProveRulesWritesProofConditionAndMarks) {
  std::vector<RewriteRule> rules = rules_of_file(GOPT_TEST_RULES "/false.rules");
  rules.resize(1);
  rules[0].proof = ProofRecord{"x", 1, "y", "z", ""};
  for (RewriteRule& rule : rules_of_file(GOPT_SHIPPED_RULES "/hand.rules"))
    if (rule.name == "relu-relu" || rule.name == "sin-cos-squares") rules.push_back(std::move(rule));
  int calls = 0;
  const std::vector<Verification> found =
      prove_rules(rules, {}, [&](const RewriteRule&, const Verification&) { calls++; });
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(calls, 3);
  EXPECT_FALSE(rules[0].proof.has_value());
  EXPECT_TRUE(rules[1].proof.has_value());
  EXPECT_TRUE(rules[2].marks.finite_only);
}

TEST(Record, KeepsObligationsWhenAsked) {
  const RewriteRule rule = rules_of_file(GOPT_TEST_RULES "/true.rules")[0];
  VerifyOptions options;
  options.keep_obligations = true;
  const Verification v = verify_rule(rule, options);
  ASSERT_TRUE(v.proof.has_value());
  EXPECT_EQ(static_cast<int>(v.obligations.size()), v.proof->obligations);
  for (const Obligation& o : v.obligations) EXPECT_NE(o.smtlib.find("(check-sat)"), std::string::npos);
}

TEST(Record, CounterexampleSaysSizesAndValues) {
  const Verification v = verify_rule(rules_of_file(GOPT_TEST_RULES "/false.rules")[0]);
  ASSERT_TRUE(v.counterexample.has_value());
  const std::string text = to_string(*v.counterexample);
  EXPECT_NE(text.find("n="), std::string::npos) << text;
  EXPECT_NE(text.find(" against "), std::string::npos) << text;
}

}  // namespace
}  // namespace gopt
