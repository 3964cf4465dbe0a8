// Which rules and passes a run uses, from the names in its options.
#pragma once

#include "gopt/optimizer.h"
#include "matching/pattern.h"

namespace gopt::optimizer {

// Patterns of the rules that the options leave on and that may come to match: left out are rules with an operator that
// neither the graph has nor another rule's right side makes, and rules that cannot be matched (see compile_rule).
// Errors: a name in the options that no rule has.
Result<std::vector<Pattern>> select_patterns(const std::vector<RewriteRule>& rules, const SearchOptions& options,
                                             const Graph& graph);

// Errors: a name that is no pass, with those that there are.
Status check_pass_names(const std::vector<std::string>& names);

}  // namespace gopt::optimizer
