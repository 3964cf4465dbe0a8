// What linear arithmetic is told of the parts of indexes that are not linear: of floor divisions and of products.
#pragma once

#include <set>
#include <vector>

#include "gopt/index.h"

namespace gopt::verifier {

// Indexes that are not negative, of a division n // d: n - d q, d - 1 - (n - d q), and what the literals say of q
// itself.
std::vector<Index> division_facts(AtomId division, const std::vector<Cond>& literals);

// Products of two of the facts, not negative as these are, whose products of atoms are among the known ones: with them
// most questions about products are linear.
std::vector<Index> product_facts(const std::vector<Index>& facts, const std::set<std::vector<AtomId>>& known,
                                 size_t at_most);

}  // namespace gopt::verifier
