// What trials draw: sizes and attributes, and values of many kinds at once. A draw depends on its number and on the
// name of what it is for alone, so that pairs share what is made for given sizes.
#pragma once

#include <optional>
#include <set>

#include "candidate.h"
#include "reals.h"

namespace gopt::generator {

// A number for a symbol in a draw, by its name, since its id depends on what was made before.
uint64_t symbol_key(AtomId symbol, uint64_t draw);

// Symbols of a pair: those of its variables' extents, and those that attributes speak of; some may be both.
struct PairSymbols {
  std::set<AtomId> extents, attributes;
};
PairSymbols symbols_of(const TermStore& terms, const TermPair& pair);

// Every second draw has some long extents, so that kernels at strides fit in one another.
bool is_long(uint64_t draw);

// Numbers for symbols. No extent is 0: what holds but for tensors without elements is a rule with a condition.
Environment drawn_sizes(const PairSymbols& symbols, uint64_t draw);

// Elements of the pair's variable number `variable`.
std::vector<Reals> drawn_values(uint64_t draw, size_t variable, size_t count);

}  // namespace gopt::generator
