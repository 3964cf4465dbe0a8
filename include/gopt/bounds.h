// Index arithmetic where ranges are expressions of sizes: what holds of subscripts and guards for every size of a
// model's open extents, as code for all sizes has to know it.
#pragma once

#include <map>
#include <set>

#include "gopt/index.h"

namespace gopt {

// What is known of symbols: sizes are at least 1, counts at least 0, others lie between expressions of these and of
// each other.
struct SymbolBounds {
  struct Span {
    Index low, high;  // both included
  };
  std::set<AtomId> sizes;
  std::set<AtomId> counts;
  std::map<AtomId, Span> spans;
};

// Whether index >= 0 whatever the symbols are within their bounds. False also where that is not seen.
bool is_surely_nonnegative(const Index& index, const SymbolBounds& bounds);

// The same value, with floor divisions and conditions resolved that the bounds decide.
Index simplify(const Index& index, const SymbolBounds& bounds);
Cond simplify(const Cond& cond, const SymbolBounds& bounds);

// The polynomial a of index = a * symbol + rest, where neither depends on the symbol; nothing where it is not linear.
std::optional<Index> slope(const Index& index, AtomId symbol);

}  // namespace gopt
