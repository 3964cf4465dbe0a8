#include "shipped_rules.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace gopt::cli {
namespace {

namespace fs = std::filesystem;

std::string shipped_folder(const std::string& own) {
  if (const char* folder = std::getenv("GOPT_RULES")) return folder;
  if (!own.empty()) return own;
  std::error_code error;
  const fs::path installed =
      fs::read_symlink("/proc/self/exe", error).parent_path().parent_path() / "share" / "gopt" / "rules";
  if (!error && fs::is_directory(installed, error)) return installed.string();
  return GOPT_RULES_FOLDER;
}

}  // namespace

Result<std::vector<std::string>> shipped_rule_files(const std::string& own) {
  const std::string folder = shipped_folder(own);
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".rules" && entry.path().filename() != "shortcut.rules")
      files.push_back(entry.path().string());
  if (files.empty()) return Error{"no rules in " + folder + "; give --rules FILE or set GOPT_RULES to their folder"};
  std::sort(files.begin(), files.end());
  // Of two rules that do the same the first is applied: the one whose name a person gave.
  std::stable_partition(files.begin(), files.end(),
                        [](const std::string& file) { return fs::path(file).filename() == "hand.rules"; });
  return files;
}

}  // namespace gopt::cli
