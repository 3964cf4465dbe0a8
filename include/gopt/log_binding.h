// Whether the log of a proof is the proof of a rule: of all of its outputs, under its condition and nothing more, with
// the expressions that the operators' definitions give. The steps themselves are checked by check_proof_log()
// (proof_check.h); what both together leave to be trusted is in docs/verifier.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gopt/rule.h"

namespace gopt {

// The name of the rule that a log says it is about. Errors: text that is no log, or that does not say.
Result<std::string> rule_of_log(std::string_view log);

struct LogBinding {
  std::vector<std::string> faults;  // why it is not this rule's proof; empty where it is
  // Where outputs were proved in cases of sizes: at how many assignments of sizes it was looked at that the cases leave
  // none out. 0: each output has a step for all sizes.
  int sizes_tried = 0;
};
// `rule` with its record, as its file has it. Errors: text that is no log.
Result<LogBinding> bind_proof_log(std::string_view log, const RewriteRule& rule);

}  // namespace gopt
