// Hashes of indexes and conditions for memo tables, and their exact values under an assignment with default 0.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "gopt/index.h"

namespace gopt::verifier {

size_t hash_of(const Index& index);
size_t hash_of(const Cond& cond);

struct CondPair {
  Cond first, second;
  friend bool operator==(const CondPair& a, const CondPair& b) { return a.first == b.first && a.second == b.second; }
};
struct CondPairHash {
  size_t operator()(const CondPair& pair) const { return hash_of(pair.first) * 31 + hash_of(pair.second); }
};

// Values of symbols; those that have none are 0.
using Assignment = std::unordered_map<uint32_t, int64_t>;
// Nothing on overflow, division by a number below one, or a load.
std::optional<int64_t> value_of(const Index& index, const Assignment& assignment);
std::optional<bool> truth_of(const Cond& cond, const Assignment& assignment);

}  // namespace gopt::verifier
