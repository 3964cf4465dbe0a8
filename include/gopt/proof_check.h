// A second opinion on proofs: reads the log that `rulegen verify --log` writes and checks each of its steps with code
// of its own (parser, polynomials, terms, evaluation); nothing of the prover, of Z3 or of the operators' definitions is
// used. What it trusts, and how far each check goes, is in docs/verifier.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gopt/result.h"

namespace gopt {

// A question that the log claims to be settled. The text is the checker's own, for another solver.
struct LoggedObligation {
  std::string what;
  std::string smtlib;  // unsatisfiable when it holds
};

struct LogReport {
  std::string rule;
  int by_algebra = 0;     // steps that follow by the checker's own arithmetic and the obligations
  int by_evaluation = 0;  // steps that were evaluated before and after at random
  std::vector<LoggedObligation> obligations;
  std::vector<std::string> faults;  // what is wrong; empty for a log that is accepted
};

// Checks the log of one proof. Errors: text that is no log.
Result<LogReport> check_proof_log(std::string_view text);

}  // namespace gopt
