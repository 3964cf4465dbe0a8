// Factors that all terms of a form share, which laws of quotients, roots and logarithms take out.
#pragma once

#include <optional>
#include <vector>

#include "solver/proof_state.h"

namespace gopt::verifier {

bool is_exponential(const Factor& f);

// Where each term holds factor i of the first term, if all do and it is free of binders.
std::optional<std::vector<size_t>> shared_positions(const NormalForm& form, size_t i);
void remove_factors(NormalForm& form, const std::vector<size_t>& positions);  // one of each term

// The coefficient of the term whose key comes first (of numbers, only where there is nothing else): it says which of a
// form and its multiples stands for all.
Rational leading_coefficient(const NormalForm& form);

// The least power of each exponential, free of binders, by which a sum of them may be divided so that the least power
// that is left is 0: one way to write e^a (1 + e^b) = e^a + e^(a+b).
std::vector<Factor> least_exponentials(const NormalForm& form);

// A factor, free of binders, that every term holds twice.
std::optional<Factor> shared_square(const NormalForm& form);

}  // namespace gopt::verifier
