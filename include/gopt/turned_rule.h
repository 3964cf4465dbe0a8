// A rule the other way round.
#pragma once

#include <optional>

#include "gopt/rule.h"

namespace gopt {

// From the rule's right side to its left, without proof and marks, named anew; the region stays. Nothing where the
// right side does not bind all that the left needs, or all that it has is on the left, too, and of the same types: that
// only adds operators.
std::optional<RewriteRule> turned_round(const RewriteRule& rule);

}  // namespace gopt
