// No right side with a small change is proved although evaluation tells it apart. The proof is asked alone, without the
// samples that refute most mutants first.
#include <filesystem>

#include "rule_files.h"

namespace gopt {
namespace {

TEST(Mutation, NoMutantIsProvedThatEvaluationTellsApart) {
  constexpr int kMutants = 120;
  std::vector<RewriteRule> rules = rules_of_file(GOPT_TEST_RULES "/true.rules");
  std::vector<std::string> files{GOPT_SHIPPED_RULES "/hand.rules"};
  for (const auto& entry : std::filesystem::directory_iterator(GOPT_TEST_RULES "/corpus/true"))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files)
    for (RewriteRule& rule : rules_of_file(file)) rules.push_back(std::move(rule));
  VerifyOptions options;
  options.samples = 0;
  options.rlimit = 1'000'000;
  int made = 0, proved = 0, refutable = 0;
  for (uint64_t seed = 0; made < kMutants; seed++) {
    const auto mutant = mutate_right_side(rules[seed * 7919 % rules.size()], 7'000'003 + seed);
    if (!mutant) continue;
    made++;
    const Verification v = verify_rule(*mutant, options);
    RewriteRule conditional = *mutant;
    if (v.verdict == Verdict::Proved) conditional.condition = v.condition;
    const auto counterexample = find_counterexample(conditional, 60, seed);
    refutable += counterexample.has_value();
    if (v.verdict != Verdict::Proved) continue;
    proved++;
    EXPECT_FALSE(counterexample.has_value()) << print_rule(conditional) << to_string(*counterexample);
  }
  // The audit is worth something only where most mutants are wrong and some are right.
  EXPECT_GT(refutable, kMutants / 2);
  EXPECT_GT(proved, 0);
}

}  // namespace
}  // namespace gopt
