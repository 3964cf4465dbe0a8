// Elements of small integer tensors as index expressions: shape arithmetic is carried through symbolically, so that
// shapes computed from shapes become attributes, and constants where they are numbers.
#pragma once

#include "import_state.h"

namespace gopt::ir {

// The elements of an integer or bool tensor of rank 0 or 1, where they are known.
std::optional<std::vector<Index>> known_integers(ImportState& state, const Value& value);

// The lesser of two that are not negative, as a polynomial over floors of quotients, which are all that an Index has:
// floor(1 / (1 + floor(b / (a + 1)))) is 1 where a >= b, else 0.
Index lesser(const Index& a, const Index& b);
// Whether there is such an expression in an index; and whether `place` is one of this extent and something else, and so
// lies within it.
bool has_lesser(const Index& index);
bool is_lesser_of(const Index& place, const Index& extent);

// Finds what is known of a new node's output from its inputs and keeps it in `state`.
void learn_integers(ImportState& state, const Value& value);

}  // namespace gopt::ir
