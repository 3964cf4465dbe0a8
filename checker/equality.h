// Whether two sums of terms are equal by the steps of a log.
#pragma once

#include "entailment.h"

namespace gopt::checker {

class EqualityChecker {
 public:
  EqualityChecker(const ProofSteps& steps, Entailment& entailment, SmallNumbers& numbers, LogReport& report)
      : steps_(steps), entailment_(entailment), numbers_(numbers), report_(report) {}

  // By reflexivity or by a step of the log; a step may not rest on itself. Throws Fault where the step that says so is
  // wrong.
  bool are_equal(const Condition& context, const Form& left, const Form& right);

  // Counts the evaluation. Throws Fault where the two differ at small sizes, or were never to be evaluated.
  void must_evaluate_alike(const Condition& context, const Evaluable& a, const Evaluable& b, const std::string& what,
                           WhereZeroDivides zero = WhereZeroDivides::Claimed);

 private:
  enum class State { Busy, Accepted };

  bool evaluate_alike(const Condition& context, const Evaluable& a, const Evaluable& b,
                      WhereZeroDivides zero = WhereZeroDivides::Claimed);
  void check(const LoggedEquality& e);
  void check_rearranged(const LoggedEquality& e, const Form& difference);
  void check_either_way(const LoggedEquality& e);
  void check_classes(const LoggedEquality& e);
  void check_class(const LoggedEquality& e, const std::vector<LoggedMember>& members);
  void check_sums(const LoggedEquality& e);
  Form integrand_of(const LoggedEquality& e, const LoggedSum& sum) const;
  void check_cases(const LoggedEquality& e);
  void check_pointwise(const LoggedEquality& e);
  void check_signs(const LoggedEquality& e);
  void check_factors(const LogTerm& first, const LogTerm& changed, const Condition& context);
  bool equal_factors(const LogFactor& a, const LogFactor& b, const Condition& context);

  const ProofSteps& steps_;
  Entailment& entailment_;
  SmallNumbers& numbers_;
  LogReport& report_;
  std::map<const LoggedEquality*, State> states_;  // of those that were looked at
};

}  // namespace gopt::checker
