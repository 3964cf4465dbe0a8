// What a condition is made of.
#pragma once

#include <set>
#include <vector>

#include "gopt/expr.h"
#include "solver/solver.h"

namespace gopt::verifier {

// Whether no other symbols occur.
bool is_over(const Cond& cond, const std::set<AtomId>& symbols);

// The parts that hold together; an equality is one part, not two comparisons.
std::vector<Cond> parts_of(const Cond& condition);

// How many sizes a product of the condition has at most.
size_t degree(const Cond& cond);

// What divides inside: a condition means something only where all of it is positive. Divisors of divisors come first.
void collect_divisors(const Index& index, std::vector<Index>& out);
void collect_divisors(const Cond& cond, std::vector<Index>& out);
void collect_divisors(const Expr& e, std::vector<Index>& out);

// Whether nothing that divides becomes 0, which would have no meaning.
bool can_substitute(const std::vector<Index>& divisors, const Substitution& substitution);

// Divisions of divisions as one, where `given` lets them be.
Cond without_nested_divisions(const Cond& cond, const Cond& given, Solver& solver);

}  // namespace gopt::verifier
