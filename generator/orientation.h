// Which side of a pair a rule starts from: what can be a left side at all, and what costs less.
#pragma once

#include "candidate.h"
#include "kernels.h"

namespace gopt::generator {

// Whether a rule may lead from one side to the other: the left side applies operators to activations alone, since a
// model's weights are folded, and binds all variables of the right.
bool can_be_left(const TermStore& terms, const std::vector<TermId>& from, const std::vector<TermId>& to);

// The rules that a pair gives: from the dearer side, or both ways where that depends on sizes. The first one, if there
// is one, is the pair itself or the pair reversed. `is_symmetry`: the sides differ by names alone.
std::vector<TermPair> directions(const TermStore& terms, Kernels& kernels, const TermPair& pair, bool is_symmetry);

// Operators on weights alone.
int weight_ops(const TermStore& terms, const std::vector<TermId>& roots);

}  // namespace gopt::generator
