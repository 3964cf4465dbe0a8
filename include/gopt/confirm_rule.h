// A proof record says that a rule was proved, and anybody can write one. Whoever relies on a rule proves it again
// (docs/trust.md): the verdict is this process's own, and nothing that was read has a say in it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "gopt/rule.h"

namespace gopt {

struct Confirmation {
  std::optional<ProofRecord> proof;  // of the rule as it stands, made here
  std::string why_not;               // where there is none
};

// Proves the rule as it stands: under its own condition alone, with no mark that it does not carry.
Confirmation confirm_rule(const RewriteRule& rule);

// Whether the rule's record is not of this proof of it, although the solver is the same: it is another program's, or
// was made up.
bool record_differs(const RewriteRule& rule, const ProofRecord& own);

// Keeps what it found while the process lasts: by a rule's whole text, since a hash that is no cryptographic one says
// nothing against somebody who looks for two rules that share it.
class RuleConfirmer {
 public:
  const Confirmation& confirm(const RewriteRule& rule);

 private:
  std::map<std::string, Confirmation> known_;
};

}  // namespace gopt
