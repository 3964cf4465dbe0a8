// Which rules and passes a run uses, from the names in its options.
#pragma once

#include "gopt/optimizer.h"
#include "pattern.h"

namespace gopt::optimizer {

// Patterns of the rules that the options leave on. Rules that cannot be matched (see compile_rule) are left out.
// Errors: a name in the options that no rule has.
Result<std::vector<Pattern>> select_patterns(const std::vector<RewriteRule>& rules, const SearchOptions& options);

// Errors: a name that is no pass, with those that there are.
Status check_pass_names(const std::vector<std::string>& names);

}  // namespace gopt::optimizer
