// Whatever a candidate is, as a rule that may be applied: as it stands, or corrected where it holds on a part alone.
#include "gopt/verifier.h"

namespace gopt {

Result<FullRule> prove_full(const RewriteRule& candidate) {
  RewriteRule partial = candidate;
  if (!candidate.is_partial()) {
    if (prove_rule(partial).verdict == Verdict::Proved) return FullRule{std::move(partial), true};
    GOPT_ASSIGN_OR_RETURN(PartialVerification found, prove_partial(candidate));
    partial = std::move(found.rule);
  }
  GOPT_ASSIGN_OR_RETURN(RewriteRule full, corrected(partial));
  const Verification v = prove_rule(full);
  if (v.verdict != Verdict::Proved) return Error{to_string(v.verdict) + ": " + v.reason};
  return FullRule{std::move(full), false};
}

}  // namespace gopt
