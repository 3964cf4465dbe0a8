// Functions of one element that rise or fall with it: the largest of f(x_k) is f of the largest x_k, whatever f is made
// of. maximum.h takes them out of maxima.
#pragma once

#include <optional>

#include "solver/proof_state.h"

namespace gopt::verifier {

// 1 where the form never falls as the element rises, -1 where it never rises, 0 where it does not depend on it; nothing
// where neither was seen. The element is of an input, with this key.
std::optional<int> direction_of(const NormalForm& form, const std::string& element, ProofState& state);

// The only element in the branch that depends on the branch's binders, where nothing else does and its value is not
// simply a multiple of it with something added.
std::optional<Factor> sole_element(const Branch& branch);
// The only element that the form holds, which is free of binders and no sum of its multiples.
std::optional<Factor> sole_element(const NormalForm& form);

}  // namespace gopt::verifier
