#include "derive_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "algebra.h"
#include "gopt/parallel.h"
#include "progress.h"

namespace gopt::cli {
namespace {

std::string step_name(const DerivationStep& step) { return step.rule + (step.is_reversed ? " reversed" : ""); }

}  // namespace

std::string verdict_text(const Derivation& derivation) {
  if (derivation.verdict == Derivation::Verdict::Follows)
    return fmt::format("follows in {} step{}", derivation.step_count, derivation.step_count == 1 ? "" : "s");
  return to_string(derivation.verdict) + (derivation.reason.empty() ? "" : ": " + derivation.reason);
}

std::string derivation_text(const Derivation& derivation) {
  if (derivation.verdict != Derivation::Verdict::Follows) return "";
  std::string text = "    " + terms_text(derivation.goal.left) + "\n";
  for (const DerivationStep& step : derivation.steps)
    text += "  = " + terms_text(step.graph) + "  by " + step_name(step) + "\n";
  if (derivation.steps.size() < derivation.step_count)
    text += fmt::format("  = ... {} steps, too many to be written\n", derivation.step_count);
  return text;
}

std::string rules_text(const Derivation& derivation) {
  std::vector<std::string> names;
  for (const DerivationStep& step : derivation.steps)
    if (const std::string name = step_name(step); std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

nlohmann::json derivation_json(const std::string& name, const Derivation& derivation) {
  nlohmann::json row = {{"name", name},
                        {"verdict", to_string(derivation.verdict)},
                        {"iterations", derivation.iterations},
                        {"nodes", derivation.nodes},
                        {"classes", derivation.classes}};
  if (!derivation.reason.empty()) row["reason"] = derivation.reason;
  if (derivation.verdict != Derivation::Verdict::Follows) return row;
  row["steps"] = derivation.step_count;
  row["left"] = terms_text(derivation.goal.left);
  nlohmann::json& steps = row["derivation"] = nlohmann::json::array();
  for (const DerivationStep& step : derivation.steps)
    steps.push_back({{"rule", step.rule}, {"reversed", step.is_reversed}, {"graph", terms_text(step.graph)}});
  return row;
}

std::vector<Derivation> derive_on_threads(const std::vector<DerivationTask>& tasks, const DerivationRules& rules,
                                          const DerivationLimits& limits, int threads) {
  std::vector<Derivation> found(tasks.size());
  parallel_for(threads, tasks.size(),
               [&](int, size_t i) { found[i] = derive_rule(*tasks[i].goal, rules, tasks[i].allowed, limits); });
  return found;
}

Result<std::vector<RewriteRule>> load_equations(const std::vector<std::string>& files) {
  std::vector<RewriteRule> rules;
  std::map<std::string, std::string> known;
  for (const std::string& path : files) {
    GOPT_ASSIGN_OR_RETURN(RuleDatabase database, load_rules(path));
    for (const std::string& warning : database.warnings) fmt::print(stderr, "rulegen: {}\n", warning);
    for (RewriteRule& rule : database.rules) {
      const auto [entry, is_new] = known.try_emplace(rule.name, rule.content_hash());
      if (is_new) {
        rules.push_back(std::move(rule));
      } else if (entry->second != rule.content_hash()) {
        return Error{path + ": another rule is named `" + rule.name + "`"};
      }
    }
  }
  return rules;
}

}  // namespace gopt::cli
