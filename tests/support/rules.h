// Rules of files and texts. What cannot be read is a broken test: it throws.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "gopt/rule.h"
#include "text_files.h"

namespace gopt {

inline std::vector<RewriteRule> rules_in(const std::string& text, const std::string& name = "test") {
  auto rules = parse_rules(text, name);
  if (!rules) throw std::runtime_error(rules.error().message);
  return *std::move(rules);
}
inline std::vector<RewriteRule> rules_of_file(const std::string& path) { return rules_in(read_file(path), path); }

}  // namespace gopt
