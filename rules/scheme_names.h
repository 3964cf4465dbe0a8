// Names of a scheme that stand for another number at each axis of a list: an extent, an integer or a place, read at the
// axis itself or through permutations. Permutations are words of a free group: what is equal there is equal for all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gopt/scheme.h"

namespace gopt::rules {

struct Letter {
  std::string permutation;
  bool inverse = false;
  friend bool operator==(const Letter&, const Letter&) = default;
};
using Word = std::vector<Letter>;
Word product(const Word& outer, const Word& inner);  // i to outer(inner(i)), reduced
Word inverse(const Word& word);
std::string to_string(const Word& word);

struct AxisName {
  enum class Head { Extent, Integer, Place, One, Zero } head;
  std::string symbol;  // Integer: whose
  std::string list;
  Word word;           // read at word(i)
  std::string subset;  // and i is an axis of this subset; empty: of the list
  const std::string& domain() const { return subset.empty() ? list : subset; }
};

// What the name says at each axis. Nothing for names that say one number: of other symbols, rank.A and size.A.
std::optional<AxisName> axis_name(const Scheme& scheme, const std::string& name);
// The same for a value that is a name alone.
std::optional<AxisName> axis_name(const Scheme& scheme, const Index& value);

// rank.A (also of subsets) and size.A, the product of its extents.
struct ListNumber {
  bool is_rank;
  std::string of;
};
std::optional<ListNumber> list_number(const Scheme& scheme, const std::string& name);

const AxisSymbol* find_symbol(const Scheme& scheme, const std::string& name);
bool is_list(const Scheme& scheme, const std::string& name);

// Why the name cannot be meant, if so: it begins as a scheme's name does, and goes on otherwise.
std::optional<std::string> wrong_name(const Scheme& scheme, const std::string& name);

// What the name says at this axis of its domain.
Index value_at(const AxisName& name, size_t axis, const RankAssignment& ranks);
int length_of(const std::string& list_or_subset, const RankAssignment& ranks);

}  // namespace gopt::rules
