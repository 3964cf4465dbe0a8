// Integer values for symbols that satisfy a condition: all of them, for sums over binders, or random ones.
#pragma once

#include <functional>
#include <random>

#include "budget.h"
#include "polynomial.h"

namespace gopt::checker {

using Values = std::map<std::string, int64_t>;

// Elements of integer inputs (indices of a gather), drawn from the seed.
int64_t loaded_integer(uint64_t seed, int input, const std::vector<int64_t>& subscripts);

// Throws Fault where a symbol has no value or a divisor is not positive.
int64_t value_of(const Poly& poly, const Values& values, uint64_t seed);
bool holds(const Condition& condition, const Values& values, uint64_t seed);

// Calls visit once for each assignment of the binders that satisfies the guard. Throws Fault where the guard leaves a
// binder without bounds, BudgetSpent where more than `limit` assignments are looked at.
void for_each_assignment(const std::vector<std::string>& binders, const Condition& guard, Values& values, uint64_t seed,
                         int64_t limit, const std::function<void()>& visit);

// Random small values of the symbols that satisfy the condition; false where none were found.
bool draw_assignment(const std::set<std::string>& symbols, const Condition& condition, std::mt19937_64& random,
                     Values& values, uint64_t seed);

}  // namespace gopt::checker
