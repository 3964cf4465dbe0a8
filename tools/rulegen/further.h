// What `rulegen verify` does beyond a verdict: more general forms of what is proved, and the region of what is not.
#pragma once

#include <string>
#include <vector>

#include "gopt/verifier.h"

namespace gopt::cli {

// "partially equal on output 0 [0:n, 1:h-1]", with its condition; or why no region is known. For a refuted rule.
std::string partial_text(const RewriteRule& rule);

// Proved rules in their most general forms, the others as they are.
std::vector<RewriteRule> generalised(const std::vector<RewriteRule>& rules);

}  // namespace gopt::cli
