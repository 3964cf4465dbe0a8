// How representatives share variables. A representative's variables are local: numbered within their class in order of
// first occurrence. A naming gives each of them a number in the term that it is used in, four bits each; a term under a
// naming is a Named. A NameMap renames the variables of a whole term.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace gopt::generator {

constexpr int kMaxVariables = 8, kMaxClasses = 16;

using Naming = uint32_t;
inline unsigned nibble(uint32_t word, unsigned at) { return word >> (4 * at) & 15; }
inline uint32_t with_nibble(uint32_t word, unsigned at, unsigned value) {
  return (word & ~(15U << (4 * at))) | value << (4 * at);
}

struct Named {
  uint32_t rep = 0;
  Naming naming = 0;
  friend auto operator<=>(const Named&, const Named&) = default;
};

// Nibble k of entry c: what variable k of class c becomes; 15 where it has no name yet.
struct NameMap {
  std::array<uint32_t, kMaxClasses> of_class;
  static NameMap nothing() {
    NameMap map;
    map.of_class.fill(~0U);
    return map;
  }
  friend bool operator==(const NameMap&, const NameMap&) = default;
};

// Classes of a term's variables, in order of first occurrence.
struct Signature {
  uint8_t count = 0;
  std::array<uint8_t, kMaxVariables> classes{};
  std::array<uint8_t, kMaxClasses> used{};  // variables of each class
  Naming identity = 0;
  std::vector<NameMap> permutations;  // of each class, the identity first

  Naming renamed(Naming naming, const NameMap& map) const {
    Naming result = 0;
    for (unsigned i = 0; i < count; i++) result |= nibble(map.of_class[classes[i]], nibble(naming, i)) << (4 * i);
    return result;
  }
  // From the term's own numbers to those of the naming.
  NameMap map_of(Naming naming) const {
    NameMap map = NameMap::nothing();
    for (unsigned i = 0; i < count; i++) {
      uint32_t& own = map.of_class[classes[i]];
      own = with_nibble(own, nibble(identity, i), nibble(naming, i));
    }
    return map;
  }
  NameMap inverse_of(Naming naming) const {
    NameMap map = NameMap::nothing();
    for (unsigned i = 0; i < count; i++) {
      uint32_t& own = map.of_class[classes[i]];
      own = with_nibble(own, nibble(naming, i), nibble(identity, i));
    }
    return map;
  }
};

// Signatures by number; a number stands for its sequence of classes.
class Signatures {
 public:
  uint16_t intern(const std::vector<uint8_t>& classes);
  const Signature& operator[](uint16_t number) const { return signatures_[number]; }

 private:
  std::map<std::string, uint16_t> numbers_;
  std::deque<Signature> signatures_;  // they stay where they are
};

}  // namespace gopt::generator
