// Rules in the JSON form of TASO's graph_subst.pb (docs/grammar.md): two lists of operators over pattern variables and
// the pairs of outputs that are said to be equal. What that form leaves to shapes (groups, kernel sizes, split points)
// becomes symbols of the rule. The result is unproved, as everything that comes from elsewhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gopt/rule.h"

namespace gopt {

// Errors: "FILE: rule 17: unknown operator 'foo'", or that the text is no JSON of this form.
Result<std::vector<RewriteRule>> parse_taso_rules(std::string_view text, const std::string& file_name);

}  // namespace gopt
