#include "rule_input.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gopt/taso_json.h"

namespace gopt::cli {

Result<std::string> read_text(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return Error{path + " is a folder, not a file"};
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return Error{path + ": cannot be read"};
  return text.str();
}

Result<RuleFile> read_rule_file(const std::string& path, RuleFormat format) {
  GOPT_ASSIGN_OR_RETURN(std::string text, read_text(path));
  auto rules = format == RuleFormat::TasoJson ? parse_taso_rules(text, path) : parse_rules(text, path);
  if (!rules) return rules.error();
  return RuleFile{path, std::move(text), *std::move(rules)};
}

}  // namespace gopt::cli
