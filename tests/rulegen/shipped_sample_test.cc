// A sample of the shipped database is proved again; scripts/make_rules proves all of it.
#include <gtest/gtest.h>

#include "gopt/verifier.h"

namespace gopt {
namespace {

void expect_proved(const RewriteRule& rule) {
  const Verification found = verify_rule(rule);
  EXPECT_EQ(found.verdict, Verdict::Proved) << rule.name << ": " << found.reason;
}

TEST(ShippedSample, IsProvedAgain) {
  for (const char* file : {"/core.rules", "/shortcut.rules"}) {
    const auto database = load_rules(std::string(GOPT_RULES_FOLDER) + file);
    ASSERT_TRUE(database.ok()) << database.error().message;
    EXPECT_TRUE(database->warnings.empty()) << database->warnings.front();
    ASSERT_GT(database->rules.size(), 500u);
    for (size_t i = 7; i < database->rules.size(); i += 61) expect_proved(database->rules[i]);
  }
}

// A twentieth of the rules for classes of operators and of those that are corrected, a tenth of those for windows, and
// every rule for siblings.
TEST(ShippedSample, RulesOfScriptsAreProvedAgain) {
  for (const auto& [file, stride] : {std::pair("/elementwise.rules", 19), std::pair("/siblings.rules", 1),
                                     std::pair("/corrected.rules", 19), std::pair("/spatial.rules", 9)}) {
    const auto database = load_rules(std::string(GOPT_RULES_FOLDER) + file);
    ASSERT_TRUE(database.ok()) << database.error().message;
    for (size_t i = 0; i < database->rules.size(); i += static_cast<size_t>(stride)) expect_proved(database->rules[i]);
  }
}

TEST(ShippedSample, PartialRulesAreProvedAgain) {
  const auto database = load_rules(GOPT_RULES_FOLDER "/partial.rules");
  ASSERT_TRUE(database.ok()) << database.error().message;
  EXPECT_TRUE(database->rules.empty());
  EXPECT_GT(database->partial_rules.size(), 10u);
  for (const RewriteRule& rule : database->partial_rules) expect_proved(rule);
}

}  // namespace
}  // namespace gopt
