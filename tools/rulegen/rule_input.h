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
// The same where every rule has to be well-formed: an error names each that is not.
Result<std::vector<RewriteRule>> read_all_rules(const std::string& path, RuleFormat format);
Result<std::string> read_text(const std::string& path);

}  // namespace gopt::cli
