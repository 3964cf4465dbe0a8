#include "derive_confirm.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "gopt/confirm_rule.h"
#include "gopt/parallel.h"

namespace gopt::cli {

DerivationRulesConfirmed::DerivationRulesConfirmed(const DerivationRules& rules, int threads)
    : rules_(rules), threads_(threads), states_(rules.rules().size(), State::Unknown) {}

void DerivationRulesConfirmed::confirm_rules_of(const std::vector<Derivation>& derivations) {
  std::set<size_t> used;
  for (const Derivation& derivation : derivations)
    for (const size_t rule : derivation.used)
      if (states_[rule] == State::Unknown) used.insert(rule);
  const std::vector<size_t> open(used.begin(), used.end());
  std::vector<Confirmation> found(open.size());
  parallel_for(threads_, open.size(), [&](int, size_t i) { found[i] = confirm_rule(rules_.rules()[open[i]]); });
  for (size_t i = 0; i < open.size(); i++) {
    states_[open[i]] = found[i].proof ? State::Confirmed : State::Refused;
    if (!found[i].proof)
      fmt::print("rule `{}` is not used, although its record says that it is proved: {}\n",
                 rules_.rules()[open[i]].name, found[i].why_not);
  }
}

bool DerivationRulesConfirmed::is_confirmed(const Derivation& derivation) const {
  return std::all_of(derivation.used.begin(), derivation.used.end(),
                     [&](size_t rule) { return states_[rule] == State::Confirmed; });
}

std::vector<bool> DerivationRulesConfirmed::without_refused(std::vector<bool> allowed) const {
  for (size_t rule = 0; rule < states_.size(); rule++)
    if (states_[rule] == State::Refused) allowed[rule] = false;
  return allowed;
}

std::string DerivationRulesConfirmed::text() const {
  const auto confirmed = std::count(states_.begin(), states_.end(), State::Confirmed),
             refused = std::count(states_.begin(), states_.end(), State::Refused);
  return fmt::format("{} rules were used, all proved again{}", confirmed,
                     refused ? fmt::format("; {} were not and are left out", refused) : "");
}

}  // namespace gopt::cli
