// Sums, products and guards of an expression multiplied out by the checker itself, for the normal forms that are no
// more than that.
#pragma once

#include "terms.h"

namespace gopt::checker {

// The terms of the expression, with binders of their own. Nothing for one that holds functions, quotients, maxima or
// comparisons, or has too many terms.
std::optional<Form> expand(const Expression& e);

// The same text for terms that differ in the names and the order of their binders.
std::string canonical_text(const LogTerm& term);

}  // namespace gopt::checker
