// Rules that known systems write by hand follow from what enumeration found: the shipped core and its shortcuts, none
// of which is written by hand.
#include "gopt/rule.h"
#include "program.h"

namespace gopt {
namespace {

constexpr const char* kFound[] = {"/core.rules", "/shortcut.rules"};

TEST(KnownRules, FollowFromWhatWasFound) {
  const auto goals = parse_rules(read_file(GOPT_KNOWN_RULES), "known.rules");
  ASSERT_TRUE(goals.ok()) << goals.error().message;
  ASSERT_GT(goals->size(), 40u);
  std::string command = "derive --brief --threads 2 " GOPT_KNOWN_RULES;
  for (const char* file : kFound) command += std::string(" --rules " GOPT_RULES_FOLDER) + file;
  const Outcome outcome = run_rulegen(command);
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  const std::string lines = "\n" + outcome.text;
  for (const RewriteRule& goal : *goals)
    EXPECT_NE(lines.find("\n" + goal.name + ": follows in "), std::string::npos) << goal.name << " does not follow\n"
                                                                                 << outcome.text;
}

TEST(KnownRules, NoneIsInTheDatabaseByHand) {
  for (const char* file : kFound) {
    const auto database = load_rules(std::string(GOPT_RULES_FOLDER) + file);
    ASSERT_TRUE(database.ok()) << database.error().message;
    for (const RewriteRule& rule : database->rules) EXPECT_EQ(rule.origin.rfind("generator ", 0), 0u) << rule.name;
  }
}

}  // namespace
}  // namespace gopt
