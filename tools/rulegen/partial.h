// Proves pairs that agree on a part of their elements (docs/generator.md), for `rulegen --partial`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gopt/rule.h"

namespace gopt::cli {

struct PartialRules {
  std::vector<RewriteRule> rules;                             // proved, each with its region
  std::vector<std::pair<std::string, std::string>> rejected;  // name, and why no region is proved
};

// In the order of the candidates, whatever the number of threads. `progress` is called with a line now and then.
PartialRules prove_partial_rules(const std::vector<RewriteRule>& candidates, int threads,
                                 const std::function<void(const std::string&)>& progress);

}  // namespace gopt::cli
