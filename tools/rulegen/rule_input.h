// Files of rules in the forms that rulegen reads.
#pragma once

#include <string>
#include <vector>

#include "gopt/rule.h"

namespace gopt::cli {

enum class RuleFormat { Rules, TasoJson };

struct RuleFile {
  std::string path, text;
  std::vector<RewriteRule> rules;
  std::vector<MalformedRule> malformed;
};

// Errors: a file that cannot be read, or that is none of this form. Rules that are malformed are told apart.
Result<RuleFile> read_rule_file(const std::string& path, RuleFormat format);
// Its rules that are well-formed; the others are named on standard output, and counted.
Result<std::vector<RewriteRule>> read_good_rules(const std::string& path, RuleFormat format, size_t& malformed);
Result<std::string> read_text(const std::string& path);

}  // namespace gopt::cli
