// Random small sizes that satisfy a condition. Equations that give one symbol by the others are solved, the rest is
// drawn again until it holds.
#pragma once

#include <optional>
#include <random>
#include <set>
#include <vector>

#include "gopt/index.h"

namespace gopt::verifier {

class SizeSampler {
 public:
  // `extents` are symbols of tensor extents (drawn from 0 to 4), other symbols are attributes (from -1 to 3).
  SizeSampler(std::vector<AtomId> symbols, const std::set<AtomId>& extents, const Cond& condition);
  // Other extents than 0 to 4.
  void set_extents(Range range) { extent_range_ = range; }
  // Extents that are drawn now and then.
  void set_pool(std::vector<int64_t> pool) { pool_ = std::move(pool); }
  bool admits(const Environment& sizes) const;
  // False where no try satisfied the condition.
  bool draw(std::mt19937_64& random, Environment& sizes) const;

 private:
  struct Solved {
    AtomId symbol;
    Index value;
  };
  std::vector<AtomId> symbols_;
  std::set<AtomId> extents_;
  Cond condition_;
  std::vector<Solved> solved_;
  std::optional<Range> extent_range_;
  std::vector<int64_t> pool_;
};

}  // namespace gopt::verifier
