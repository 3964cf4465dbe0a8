// Verdicts on candidates as lines of JSON: so they travel between ranks and are kept in a checkpoint.
#pragma once

#include <optional>
#include <string>

#include "gopt/verifier.h"

namespace gopt::cli {

struct KnownVerdict {
  std::string candidate;  // its content hash
  Verdict verdict = Verdict::Unknown;
  std::string reason, counterexample;
  std::optional<RewriteRule> rule;  // as proved
  double milliseconds = 0;
};

KnownVerdict verdict_on(const RewriteRule& candidate);

std::string to_line(const KnownVerdict& known);
// Nothing where the line is no verdict (cut short, where a run was stopped), or where what it calls proved is not the
// candidate, with a proof under today's definitions. `where` names the file in errors.
std::optional<KnownVerdict> parse_verdict_line(const std::string& line, const std::string& where);

}  // namespace gopt::cli
