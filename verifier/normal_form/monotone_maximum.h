// Functions that rise, or fall, taken out of a maximum of their values. maximum.h makes maxima with these, monotone.h
// says which functions of an element do.
#pragma once

#include <optional>

#include "solver/proof_state.h"

namespace gopt::verifier {

// max_k c f(x_k) = c f(max_k x_k), or of the minimum where c f decreases, for branches that are all of this form; 0 is
// f(0) for many of them, and 1 is e^0.
std::optional<NormalForm> monotone_taken_out(const std::vector<Branch>& branches, ProofState& state);

// max(c f(x) + d, e) = max(c f(x), e - d) + d, where that is the value of a monotone function: min(e^x - 1, 0) is
// e^min(x,0) - 1.
std::optional<NormalForm> monotone_but_for_a_number(const std::vector<Branch>& branches, ProofState& state);

// max(f(x), f(y)) = f(max(x, y)) for elements x and y and an f that does not fall; f(min(x, y)) for one that does not
// rise.
std::optional<NormalForm> monotone_of_two(const NormalForm& a, const NormalForm& b, const Cond& context,
                                          ProofState& state);

// max_k f(x_k) = f(max_k x_k) for an f that does not fall, whatever it is made of; f(min_k x_k) for one that does not
// rise. Any other branch stays as it is. Precondition: the branch has values.
void take_monotone_out(Branch& branch, const Cond& context, ProofState& state);

}  // namespace gopt::verifier
