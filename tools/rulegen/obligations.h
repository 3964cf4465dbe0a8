// Obligations outside the prover: as files that stand alone, and as questions to another solver.
#pragma once

#include <string>
#include <vector>

#include "gopt/verifier.h"

namespace gopt::cli {

// Writes a rule's obligations as DIR/RULE.K.smt2. Errors: the folder cannot be made or written.
Status write_obligations(const std::string& folder, const std::string& rule,
                         const std::vector<Obligation>& obligations);

// What cvc5 said of obligations, each of which should be unsatisfiable.
struct CrossCheck {
  int agreed = 0;
  std::vector<std::string> undecided, disagreed;  // "RULE.K: what it is about"
  void add(const CrossCheck& other);
  std::string text() const;  // "390 of 391 obligations agree, 1 undecided, 0 disagree"
};

// Whether cvc5 can be run. Errors: it is not on the PATH.
Status check_cvc5();
// Asks cvc5 about all of a rule's obligations, with a limit in its resource units for each, so that the answer is the
// same on every machine. Errors: cvc5 fails to run or to read what it is given.
Result<CrossCheck> cross_check(const std::string& rule, const std::vector<Obligation>& obligations, unsigned rlimit);

inline constexpr unsigned kCrossCheckRlimit = 2'000'000;

}  // namespace gopt::cli
