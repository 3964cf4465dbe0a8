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
};

// Errors: a file that cannot be read, or whose text is malformed.
Result<RuleFile> read_rule_file(const std::string& path, RuleFormat format);
Result<std::string> read_text(const std::string& path);

}  // namespace gopt::cli
