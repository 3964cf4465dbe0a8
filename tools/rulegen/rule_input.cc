#include "rule_input.h"

#include <fmt/format.h>

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
  ParsedRules parsed;
  if (format == RuleFormat::TasoJson) {
    GOPT_ASSIGN_OR_RETURN(parsed, parse_each_taso_rule(text, path));
  } else {
    parsed = parse_each_rule(text, path);
  }
  return RuleFile{path, std::move(text), std::move(parsed.rules), std::move(parsed.malformed)};
}

Result<std::vector<RewriteRule>> read_good_rules(const std::string& path, RuleFormat format, size_t& malformed) {
  GOPT_ASSIGN_OR_RETURN(RuleFile file, read_rule_file(path, format));
  for (const MalformedRule& rule : file.malformed) fmt::print("{}\n", rule.message);
  malformed += file.malformed.size();
  return std::move(file.rules);
}

}  // namespace gopt::cli
