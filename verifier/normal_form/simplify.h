// Simplification of normal forms under a context: terms that cannot occur vanish, binders that are divided are split,
// binders that are determined or unused are eliminated, size factors and exponentials are merged. Every step keeps the
// value.
#pragma once

#include "solver/proof_state.h"

namespace gopt::verifier {

NormalForm simplify(const NormalForm& form, const Cond& context, ProofState& state);
// False where the term is 0.
bool simplify(Summand& term, const Cond& context, ProofState& state);
// Floor divisions resolved that the context decides.
Index simplify(const Index& index, const Cond& context, ProofState& state);
// The same in comparisons. A question about a guard costs far less without divisions.
Cond simplify(const Cond& cond, const Cond& context, ProofState& state);
// (n // s + c) // t is (n + c s) // (s t), where s and t are positive: extents of windows of windows.
Index without_nested_divisions(const Index& index, const Cond& given, Solver& solver);
// (n // s) // t is n // (s t), and (q t + r) // (s t) is q // s where r is within t: places in blocks of blocks.
Index divided_by_factors(const Index& index, const Cond& context, ProofState& state);
// Floor divisions that are left in subscripts and guards.
size_t count_divisions(const NormalForm& form);
void collect_divisions(const Index& index, std::set<AtomId>& out);
void collect_divisions(const Cond& cond, std::set<AtomId>& out);
// Merges powers of equal factors where that holds for all values.
void merge_factors(Summand& term, const Cond& context, ProofState& state);
// Multiplies by index^exponent, exponent 1 or -1.
void multiply_by_size(Summand& term, const Index& index, int exponent);

// The largest value of the binder that a literal "rest - divisor * binder >= 0" allows, for a divisor other than 1 that
// is positive: of windows of windows, the last one that begins before a place.
std::optional<Index> largest_multiple(const Index& literal, AtomId binder, const Cond& context, ProofState& state);

}  // namespace gopt::verifier
