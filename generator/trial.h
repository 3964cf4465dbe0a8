// Trials of a candidate by the interpreter: sizes 0 and 1 and values that hit zeros, where fingerprints cannot look
// since a number divided by zero has none.
#pragma once

#include "gopt/rule.h"

namespace gopt::generator {

// Whether the sides agree for all sizes and values drawn; a value that is not finite agrees with any other such. Sizes
// for which a side or the other is not valid tell nothing: the verifier finds the condition.
bool survives_trials(const RewriteRule& rule, uint64_t seed);

}  // namespace gopt::generator
