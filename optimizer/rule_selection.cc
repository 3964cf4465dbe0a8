#include "rule_selection.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace gopt {

const std::vector<std::string>& pass_names() {
  static const std::vector<std::string> names = {"merge-equal-nodes", "drop-identities", "fold-constants",
                                                 "merge-commuted-nodes"};
  return names;
}

}  // namespace gopt

namespace gopt::optimizer {
namespace {

Status check_rule_names(const std::set<std::string>& known, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (!known.count(name))
      return Error{fmt::format("no rule or pass is named `{}`; `gopt rules` lists the rules", name)};
  return Unit{};
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Status check_pass_names(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (!holds(pass_names(), name))
      return Error{fmt::format("no pass is named `{}`; the passes are {}", name, fmt::join(pass_names(), ", "))};
  return Unit{};
}

Result<std::vector<Pattern>> select_patterns(const std::vector<RewriteRule>& rules, const SearchOptions& options) {
  std::set<std::string> known;
  for (const RewriteRule& rule : rules) known.insert(rule.name);
  GOPT_RETURN_IF_ERROR(check_rule_names(known, options.disabled_rules));
  GOPT_RETURN_IF_ERROR(check_rule_names(known, options.enabled_rules));
  std::vector<Pattern> patterns;
  for (const RewriteRule& rule : rules) {
    if (holds(options.disabled_rules, rule.name)) continue;
    if (!options.enabled_rules.empty() && !holds(options.enabled_rules, rule.name)) continue;
    auto compiled = compile_rule(rule);
    if (compiled.ok())
      patterns.insert(patterns.end(), compiled->begin(), compiled->end());
    else if (options.progress)
      options.progress(fmt::format("rule `{}` is left out: {}", rule.name, compiled.error().message));
  }
  return patterns;
}

}  // namespace gopt::optimizer
