// Rules that hold are proved, rules that do not are refuted with an example that the interpreter confirms, and every
// graph equals itself.
#include "rule_files.h"

namespace gopt {
namespace {

class TrueRule : public ::testing::TestWithParam<NamedRule> {};
TEST_P(TrueRule, IsProved) {
  const Verification v = verify_rule(GetParam().rule);
  EXPECT_EQ(to_string(v.verdict), "proved") << v.reason << (v.counterexample ? to_string(*v.counterexample) : "");
  ASSERT_TRUE(v.proof.has_value());
  EXPECT_EQ(v.proof->definitions, definitions_hash(GetParam().rule));
}
INSTANTIATE_TEST_SUITE_P(Rules, TrueRule, ::testing::ValuesIn(named_rules(GOPT_TEST_RULES "/true.rules")), test_name);
INSTANTIATE_TEST_SUITE_P(Shipped, TrueRule, ::testing::ValuesIn(named_rules(GOPT_SHIPPED_RULES "/hand.rules")),
                         test_name);

class FalseRule : public ::testing::TestWithParam<NamedRule> {};
TEST_P(FalseRule, IsRefuted) {
  const Verification v = verify_rule(GetParam().rule);
  EXPECT_EQ(to_string(v.verdict), "refuted") << v.reason;
  EXPECT_FALSE(v.proof.has_value());
}
// The proof alone, without the samples that refute most of them first, accepts none.
TEST_P(FalseRule, IsNotProvedWithoutSampling) {
  VerifyOptions options;
  options.samples = 0;
  options.rlimit = 4'000'000;
  const Verification v = verify_rule(GetParam().rule, options);
  if (v.verdict != Verdict::Proved) return;
  // Under a condition that excludes what is wrong, it may be.
  EXPECT_FALSE(v.condition == GetParam().rule.condition);
  RewriteRule conditional = GetParam().rule;
  conditional.condition = v.condition;
  EXPECT_FALSE(find_counterexample(conditional, 200, 5).has_value()) << to_string(v.condition);
}
INSTANTIATE_TEST_SUITE_P(Rules, FalseRule, ::testing::ValuesIn(named_rules(GOPT_TEST_RULES "/false.rules")), test_name);

class SelfRule : public ::testing::TestWithParam<NamedRule> {};
TEST_P(SelfRule, LeftSideEqualsItself) {
  RewriteRule rule = GetParam().rule;
  rule.right = rule.left;
  const Verification v = verify_rule(rule);
  EXPECT_EQ(to_string(v.verdict), "proved") << v.reason;
  EXPECT_EQ(v.marks, RuleMarks{});
}
INSTANTIATE_TEST_SUITE_P(Rules, SelfRule, ::testing::ValuesIn(named_rules(GOPT_TEST_RULES "/true.rules")), test_name);

}  // namespace
}  // namespace gopt
