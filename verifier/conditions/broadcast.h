// Extents that the left side takes to be equal because it broadcasts them may also be 1, either of them. Which are is
// no matter of conditions: with 1 in their place the rule is another one, which is proved by itself.
#pragma once

#include "gopt/verifier.h"
#include "rules/rule_meaning.h"

namespace gopt::verifier {

// A way in which symbols are 1 that the rule, as it is proved under `condition`, takes to be equal to others.
struct BroadcastCase {
  std::vector<AtomId> ones;
  Cond where;  // these symbols are 1
  RewriteRule rule;
};
std::vector<BroadcastCase> broadcast_cases(const RewriteRule& rule, const Cond& condition);

}  // namespace gopt::verifier
