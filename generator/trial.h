// Trials of a pair that holds in fresh worlds: doubles at sizes 0, 1 and more, and values that hit zeros, where
// residues cannot look since a number divided by zero has none.
#pragma once

#include "candidate.h"

namespace gopt::generator {

// Whether the sides agree for all sizes and values drawn; a value that is not finite agrees with any other such, but
// some value of the left side has to be finite. Sizes for which a side or the other is not valid tell nothing: the
// verifier finds the condition. `with_prefix` puts leading axes before variables whose class allows it.
bool survives_trials(const TermStore& terms, const TermPair& pair, bool with_prefix, uint64_t seed, TapeCache& tapes);

}  // namespace gopt::generator
