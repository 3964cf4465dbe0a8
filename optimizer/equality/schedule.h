// When a pattern is matched in a growing e-graph (egg's backoff): one that has more matches than it may have rests for
// some rounds, and may then have twice as many, so that no rule takes all the room.
#pragma once

#include <set>

#include "equality/equality_match.h"

namespace gopt::optimizer {

class PatternSchedule {
 public:
  explicit PatternSchedule(const EqualityPattern& pattern) : pattern_(&pattern) {}
  const EqualityPattern& pattern() const { return *pattern_; }
  bool is_resting(int iteration) const { return rests_until_ > iteration; }
  // Matches that were not given before, at most `most`, doubled for each rest; where there are more the pattern rests.
  std::vector<EqualityMatch> new_matches(const EqualityGraph& graph, int iteration, size_t most, bool any_kind);

 private:
  const EqualityPattern* pattern_;
  std::set<std::vector<uint32_t>> given_;
  int rests_until_ = 0, rests_ = 0;
};

}  // namespace gopt::optimizer
