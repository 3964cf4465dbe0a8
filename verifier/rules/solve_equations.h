// Equations of a condition solved for symbols, so that a proof under the condition has fewer: a == b replaces one by
// the other, h % 2 == 1 replaces h by 2q + 1 with a new symbol q.
#pragma once

#include <vector>

#include "gopt/index.h"

namespace gopt::verifier {

// Indexes that the condition says are 0.
std::vector<Index> equations_of(const Cond& condition);

// Equations whose left side is a product, a b == 0, as a == 0 or b == 0.
Cond with_products_solved(const Cond& condition);
// What has to be proved for a condition that holds where one of several equations does: the condition with each of
// them.
std::vector<Cond> cases_of_equations(const Cond& condition);

// Wherever the condition holds, symbols have these values for some values of the new ones. New symbols are named by
// the symbol that they replace, so that a proof is the same in every process.
Substitution solve_equations(const Cond& condition);

}  // namespace gopt::verifier
