// Rules read from right to left. What a rule's left side demands beyond its right (that a divisor is not zero, that a
// root has a value) is lost in that direction, so that rules of that kind are not reversed.
#pragma once

#include <optional>

#include "gopt/rule.h"

namespace gopt::optimizer {

// The rule with its sides exchanged; nothing where the left side may have no value although the right side has one.
std::optional<RewriteRule> reversed(const RewriteRule& rule);

}  // namespace gopt::optimizer
