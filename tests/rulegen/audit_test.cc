// The audit by mutation: nothing that evaluation tells apart is proved, and the same is found on any number of threads.
#include "gopt/verifier.h"
#include "program.h"

namespace gopt {
namespace {

TEST(Audit, AThousandMutantsOfTheDatabase) {
  const Outcome outcome = run_rulegen(
      "audit --mutants 1000 --seed 3 " GOPT_RULES_FOLDER "/core.rules " GOPT_RULES_FOLDER "/hand.rules", "2>/dev/null");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("1000 mutants"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find(" 0 proved and different"), std::string::npos) << outcome.text;
}

TEST(Audit, DependsOnTheSeedAlone) {
  auto run = [](const std::string& more) {
    return run_rulegen("audit --mutants 150 " + more + " " GOPT_VERIFIER_RULES "/true.rules", "2>/dev/null").text;
  };
  const std::string one = run("--seed 8 --threads 1");
  EXPECT_EQ(one, run("--seed 8 --threads 3"));
  EXPECT_NE(one, run("--seed 9 --threads 1"));
}

// Samples do not help the prover here.
TEST(Audit, MutantsAreNotProvedByTheProverAlone) {
  const Outcome outcome =
      run_rulegen("audit --mutants 40 --seed 4 --prover-alone " GOPT_VERIFIER_RULES "/true.rules", "2>/dev/null");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
}

// A wrong proof would be seen: what evaluates a mutant that is proved tells false rules apart.
TEST(Audit, EvaluationTellsFalseRulesApart) {
  const auto rules = parse_rules(read_file(GOPT_VERIFIER_RULES "/false.rules"), "false.rules");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  EXPECT_GT(rules->size(), 30u);
  size_t apart = 0;
  for (const RewriteRule& rule : *rules) apart += find_counterexample(rule, 200, 5).has_value();
  EXPECT_GE(apart + 3, rules->size()) << "but for rules whose sides are never both defined";
}

TEST(Audit, WhatCannotBeReadIsNamedAndTheRestIsAudited) {
  const TestFolder folder;
  const std::string broken = write_file(folder.file("broken.rules"), "rule x\n  left\nend\n");
  const Outcome outcome = run_rulegen("audit --mutants 5 " + broken + " " + folder.file("none.rules") +
                                      " " GOPT_RULES_FOLDER "/hand.rules");
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  EXPECT_NE(outcome.text.find("broken.rules:"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("none.rules"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("5 mutants"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("2 rules or files could not be read"), std::string::npos) << outcome.text;
}

// Full rules from wrong regions: bounds moved, a piece of the rest left out, a halo or a pad changed.
TEST(Audit, PartialRulesAreCorrectedInWrongWays) {
  const Outcome outcome =
      run_rulegen("audit --mutants 150 --seed 5 --threads 2 " GOPT_RULES_FOLDER "/partial.rules", "2>/dev/null");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("150 mutants"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find(" 0 proved and different"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace gopt
