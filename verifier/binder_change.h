// Guesses of how binders correspond (untrusted), and the check that a guess is a bijection of integer vectors.
#pragma once

#include "normal_form.h"

namespace gopt {

// Subscript differences that must vanish for the two factors to be equal.
void append_equations(const Factor& known, const Factor& other, std::vector<Index>& equations);

// Solves equations == 0 for `unknowns` over `targets`; unknowns that stay free take unused targets, in the order
// numbered `alternative`. Nothing where that fails.
std::optional<Substitution> solve_binders(std::vector<Index> equations, const std::vector<AtomId>& unknowns,
                                          const std::vector<AtomId>& targets, int alternative);

// Whether `change`, from binders `from` to indexes over binders `to`, is affine with an integer matrix of determinant 1
// or -1.
bool is_unimodular(const std::vector<AtomId>& from, const std::vector<AtomId>& to, const Substitution& change);

}  // namespace gopt
