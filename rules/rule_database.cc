#include <filesystem>
#include <fstream>
#include <sstream>

#include "gopt/rule.h"

namespace gopt {

Result<RuleDatabase> load_rules(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return Error{"rules file " + path + " is a folder"};
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{"cannot open rules file " + path};
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) return Error{"cannot read rules file " + path};
  GOPT_ASSIGN_OR_RETURN(std::vector<RewriteRule> rules, parse_rules(text.str(), path));
  RuleDatabase database;
  for (RewriteRule& rule : rules) {
    if (!rule.proof) {
      database.warnings.push_back(path + ": rule `" + rule.name +
                                  "` has no proof and is left out; prove it with rulegen verify");
    } else if (rule.proof->definitions != definitions_hash(rule)) {
      database.warnings.push_back(path + ": rule `" + rule.name + "` was proved under definitions " +
                                  rule.proof->definitions + ", today's are " + definitions_hash(rule) +
                                  ": it is left out until rulegen verify proves it again");
    } else if (rule.proof->rule != rule.content_hash()) {
      database.warnings.push_back(
          path + ": rule `" + rule.name +
          "` is not the rule that its proof is of (it was edited): it is left out until rulegen verify proves it");
    } else if (rule.is_partial()) {
      database.partial_rules.push_back(std::move(rule));
    } else {
      database.rules.push_back(std::move(rule));
    }
  }
  return database;
}

}  // namespace gopt
