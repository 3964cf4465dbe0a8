#include "rule_files.h"

#include <fmt/format.h>

#include <map>

#include "shipped_rules.h"

namespace gopt::cli {

void print_warning(const std::string& text) { fmt::print(stderr, "gopt: warning: {}\n", text); }

Result<std::vector<std::string>> rule_files(const std::vector<std::string>& given) {
  return given.empty() ? shipped_rule_files() : given;
}

Result<std::vector<RewriteRule>> load_rule_files(const std::vector<std::string>& files, const Warn& warn) {
  GOPT_ASSIGN_OR_RETURN(const std::vector<std::string> paths, rule_files(files));
  std::vector<RewriteRule> rules;
  std::map<std::string, std::string> where;
  for (const std::string& path : paths) {
    GOPT_ASSIGN_OR_RETURN(RuleDatabase database, load_rules(path));
    for (const std::string& warning : database.warnings) warn(warning);
    for (RewriteRule& rule : database.rules) {
      auto [it, inserted] = where.emplace(rule.name, path);
      if (!inserted) return Error{fmt::format("rule {} is in {} and in {}", rule.name, it->second, path)};
      rules.push_back(std::move(rule));
    }
  }
  return rules;
}

}  // namespace gopt::cli
