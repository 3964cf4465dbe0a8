// Where rules come from: the files of --rules, else the databases that gopt ships.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gopt/rule.h"

namespace gopt::cli {

// Gets what is worth knowing and no error: a line each.
using Warn = std::function<void(const std::string&)>;
void print_warning(const std::string& text);  // to standard error

// The files of --rules, or, where there are none, those that gopt ships. Errors: there are none of those either.
Result<std::vector<std::string>> rule_files(const std::vector<std::string>& given);
// Rules of all files together, with warnings of stale ones. Errors: a missing or malformed file, two rules of one name.
Result<std::vector<RewriteRule>> load_rule_files(const std::vector<std::string>& files,
                                                 const Warn& warn = print_warning);

}  // namespace gopt::cli
