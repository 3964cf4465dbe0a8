// Proving many rules, with counts.
#pragma once

#include <string>

#include "gopt/verifier.h"

namespace gopt::cli {

struct VerdictCounts {
  int proved = 0, refuted = 0, unknown = 0;
  void add(Verdict verdict);
  std::string text() const;  // "48 proved, 0 refuted, 0 unknown"
};

// Writes a verification's obligations as DIR/RULE-N.smt2. Errors: the folder cannot be made or written.
Status write_obligations(const std::string& folder, const RewriteRule& rule, const Verification& verification);

}  // namespace gopt::cli
