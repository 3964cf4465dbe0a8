// Where rules come from: the files of --rules, else the databases that gopt ships.
#pragma once

#include <string>
#include <vector>

#include "gopt/rule.h"

namespace gopt::cli {

// Rules of all files together; warnings of stale ones go to standard error. Errors: a missing or malformed file, two
// rules of one name.
Result<std::vector<RewriteRule>> load_rule_files(const std::vector<std::string>& files);

}  // namespace gopt::cli
