// What `rulegen derive` prints and writes of one derivation.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gopt/derivation.h"

namespace gopt::cli {

// "follows in 3 steps", "not derived within the limits: more than 3000 nodes", ...
std::string verdict_text(const Derivation& derivation);
// The graphs of the derivation, a line each, with the rule that made it.
std::string derivation_text(const Derivation& derivation);
// "by a, b reversed": the steps' rules, each once.
std::string rules_text(const Derivation& derivation);
nlohmann::json derivation_json(const std::string& name, const Derivation& derivation);

struct DerivationTask {
  const RewriteRule* goal;
  std::vector<bool> allowed;  // empty: all
};
// In the tasks' order, the same on any number of threads.
std::vector<Derivation> derive_on_threads(const std::vector<DerivationTask>& tasks, const DerivationRules& rules,
                                          const DerivationLimits& limits, int threads);

// Proved rules of several files. Errors: a file that cannot be read; two different rules of one name.
Result<std::vector<RewriteRule>> load_equations(const std::vector<std::string>& files);

}  // namespace gopt::cli
