// Rules in the JSON form of TASO's graph_subst.pb (docs/grammar.md): two lists of operators over pattern variables and
// the pairs of outputs that are said to be equal. What that form leaves to shapes (groups, kernel sizes, split points)
// becomes symbols of the rule. The result is unproved, as everything that comes from elsewhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gopt/rule.h"

namespace gopt {

// Each rule by itself. Errors: the text is no JSON of this form.
Result<ParsedRules> parse_each_taso_rule(std::string_view text, const std::string& file_name);
// All of them. Errors, too: "FILE: rule 17: unknown operator 'foo'", a line for each that is malformed.
Result<std::vector<RewriteRule>> parse_taso_rules(std::string_view text, const std::string& file_name);

}  // namespace gopt
