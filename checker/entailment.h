// What follows from conditions by the steps of a log; a step that is used leaves an obligation.
#pragma once

#include "gopt/proof_check.h"
#include "small_numbers.h"

namespace gopt::checker {

class Entailment {
 public:
  Entailment(const ProofSteps& steps, SmallNumbers& numbers, LogReport& report)
      : steps_(steps), numbers_(numbers), report_(report) {}

  bool implied(const Hypotheses& hypotheses, const Condition& goal);
  // By arithmetic, too; and where the context says "or", each of its parts may give the goal in its own way.
  bool implied_by_cases(const Condition& context, const Condition& goal, int depth = 0);
  // Whether the counts sum to 0 wherever the context holds.
  bool sum_to_zero(const Condition& context, const Counts& counts);

 private:
  void use(const Implication& step);
  void use(const Cancellation& step);

  const ProofSteps& steps_;
  SmallNumbers& numbers_;
  LogReport& report_;
  std::set<const void*> used_;
};

}  // namespace gopt::checker
