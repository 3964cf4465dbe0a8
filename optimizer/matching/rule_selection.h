// Which rules and passes a run uses, from the names in its options.
#pragma once

#include "gopt/optimizer.h"
#include "matching/pattern.h"

namespace gopt::optimizer {

// A rule that the options leave on.
struct EnabledRule {
  const RewriteRule* rule;
  bool is_named = false;  // it was asked for by name
};
// In the order of the rules. Errors: a name in the options that no rule has.
Result<std::vector<EnabledRule>> enabled_rules(const std::vector<RewriteRule>& rules, const SearchOptions& options);

// Takes back what a pattern may do to floats: a rule that is asked for by name is applied whatever it does to rounding.
void limit(Pattern& pattern, const RuleMarks& allowed, bool is_named);

// Patterns of the rules that the options leave on and that may come to match once others were applied: left out are
// rules with an operator that neither the graph has nor another rule's right side makes, and rules that cannot be
// matched (see compile_rule). A search, which needs those that match now, has its PatternSet. Errors: as enabled_rules.
Result<std::vector<Pattern>> select_patterns(const std::vector<RewriteRule>& rules, const SearchOptions& options,
                                             const Graph& graph);

// Errors: a name that is no pass, with those that there are.
Status check_pass_names(const std::vector<std::string>& names);

}  // namespace gopt::optimizer
