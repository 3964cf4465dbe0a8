#include "rule_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

namespace gopt::cli {
namespace {

namespace fs = std::filesystem;

// $GOPT_RULES, the rules beside an installed program, or those of the source tree it was built from.
std::string shipped_folder() {
  if (const char* folder = std::getenv("GOPT_RULES")) return folder;
  std::error_code error;
  const fs::path installed =
      fs::read_symlink("/proc/self/exe", error).parent_path().parent_path() / "share" / "gopt" / "rules";
  if (!error && fs::is_directory(installed, error)) return installed.string();
  return GOPT_RULES_FOLDER;
}

Result<std::vector<std::string>> shipped_files() {
  const std::string folder = shipped_folder();
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".rules") files.push_back(entry.path().string());
  if (files.empty()) return Error{"no rules in " + folder + "; give --rules FILE or set GOPT_RULES to their folder"};
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Result<std::vector<RewriteRule>> load_rule_files(const std::vector<std::string>& files) {
  std::vector<std::string> paths = files;
  if (paths.empty()) {
    GOPT_ASSIGN_OR_RETURN(paths, shipped_files());
  }
  std::vector<RewriteRule> rules;
  std::map<std::string, std::string> where;
  for (const std::string& path : paths) {
    GOPT_ASSIGN_OR_RETURN(RuleDatabase database, load_rules(path));
    for (const std::string& warning : database.warnings) fmt::print(stderr, "gopt: warning: {}\n", warning);
    for (RewriteRule& rule : database.rules) {
      auto [it, inserted] = where.emplace(rule.name, path);
      if (!inserted) return Error{fmt::format("rule {} is in {} and in {}", rule.name, it->second, path)};
      rules.push_back(std::move(rule));
    }
  }
  return rules;
}

}  // namespace gopt::cli
