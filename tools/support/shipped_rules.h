// The rules that come with the programs.
#pragma once

#include <string>
#include <vector>

#include "gopt/result.h"

namespace gopt::cli {

// Files of $GOPT_RULES, of `own`, where that is given (a library's own copy), of the folder beside an installed
// program, or of the source tree it was built from. Errors: there are none.
Result<std::vector<std::string>> shipped_rule_files(const std::string& own = "");

}  // namespace gopt::cli
