// A derivation is worth what its rules are: those that it uses are proved again, whatever their records say, and it is
// made without those that are not.
#pragma once

#include <string>
#include <vector>

#include "gopt/derivation.h"

namespace gopt::cli {

class DerivationRulesConfirmed {
 public:
  DerivationRulesConfirmed(const DerivationRules& rules, int threads);

  // Proves the rules that the derivations use, each once. Names on standard output those that are not proved.
  void confirm_rules_of(const std::vector<Derivation>& derivations);
  // Whether all that it uses is proved. Precondition: confirm_rules_of() it.
  bool is_confirmed(const Derivation& derivation) const;
  // `allowed` without what is not proved.
  std::vector<bool> without_refused(std::vector<bool> allowed) const;
  // "12 rules were used, all proved again"
  std::string text() const;

 private:
  enum class State { Unknown, Confirmed, Refused };
  const DerivationRules& rules_;
  int threads_;
  std::vector<State> states_;
};

}  // namespace gopt::cli
