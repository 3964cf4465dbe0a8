// Proving many rules: in order for whoever looks, on as many threads as wanted, with counts and times.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gopt/verifier.h"

namespace gopt::cli {

struct VerdictCounts {
  int proved = 0, refuted = 0, unknown = 0;
  void add(Verdict verdict);
  void add(const VerdictCounts& other);
  std::string text() const;  // "48 proved, 0 refuted, 0 unknown"
};

// Verifies each rule and writes into it what was found, as prove_rules() does. `report` is called in the rules' order.
// Verdicts do not depend on the number of threads.
std::vector<Verification> prove_on_threads(std::vector<RewriteRule>& rules, const VerifyOptions& options, int threads,
                                           const std::function<void(const RewriteRule&, const Verification&)>& report);

// "12.3 s, median 4 ms, p99 120 ms a rule"
std::string times_text(double seconds, std::vector<double> milliseconds);

// The parts of a condition, one string each; equalities are whole.
std::vector<std::string> condition_texts(const Cond& condition);

}  // namespace gopt::cli
