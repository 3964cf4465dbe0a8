// The audit by mutation: nothing that evaluation tells apart is proved, and the same is found on any number of threads.
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

// The audit would see a wrong proof: rules that are given as proved and are false are told apart by what it evaluates.
TEST(Audit, FalseRulesAreNotProvedByTheProverAlone) {
  const Outcome outcome =
      run_rulegen("audit --mutants 40 --seed 4 --prover-alone " GOPT_VERIFIER_RULES "/true.rules", "2>/dev/null");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
}

}  // namespace
}  // namespace gopt
