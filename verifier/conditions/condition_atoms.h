// The language of derived conditions: atoms over a rule's symbols, of which a condition is a conjunction of clauses of
// one or two. docs/verifier.md states it.
#pragma once

#include <set>
#include <vector>

#include "rules/rule_meaning.h"

namespace gopt::verifier {

struct ConditionAtom {
  Cond cond;
  int weight;  // the smaller, the sooner it is taken among atoms that say the same
};

// Comparisons of symbols with small constants, with each other and with sums of two; residues modulo 2, 3 and `moduli`
// and modulo `divisors`; equality of the extents of values inside the sides; what either side's operators require.
std::vector<ConditionAtom> condition_atoms(const std::set<AtomId>& symbols, const std::set<AtomId>& divisors,
                                           const std::vector<Index>& extents,
                                           const std::vector<Requirement>& requirements,
                                           const std::set<int64_t>& moduli = {});

// "e == 0" for each extent of a variable or an output, alone and with what the right side requires: where tensors are
// empty, sides agree that differ elsewhere.
std::vector<ConditionAtom> emptiness_atoms(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right);

// Extents of all values of both sides that are no numbers.
std::vector<Index> inner_extents(const RewriteRule& rule);
// Small numbers that extents are divided by, as strides do: what matters may be the residue.
std::set<int64_t> moduli_of(const std::vector<Index>& extents);

}  // namespace gopt::verifier
