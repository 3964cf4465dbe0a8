// What an equality in an e-graph rests on: the applications of rules behind the unions that it follows from, and behind
// the equalities that these applications took to match. Without any other application it would hold all the same.
// derivation/explain.h makes the chain of terms of it, which may be far longer.
#pragma once

#include <set>
#include <vector>

#include "equality/equality_match.h"

namespace gopt::optimizer {

class Justification {
 public:
  Justification(const EqualityGraph& graph, const std::vector<PatternApplication>& applications)
      : graph_(graph), applications_(applications) {}
  // Precondition: they are in one class.
  void add(EqualityId a, EqualityId b);
  const std::set<uint32_t>& applications() const { return found_; }

 private:
  void follow(EqualityId from);
  void take(const PatternApplication& application);
  void align(const PatternSide& side, const std::vector<MatchedNode>& nodes, const PatternApplication& application);

  const EqualityGraph& graph_;
  const std::vector<PatternApplication>& applications_;
  std::vector<std::pair<EqualityId, EqualityId>> open_;
  std::set<EqualityId> followed_;  // links, by the id that they start from
  std::set<uint32_t> found_;
};

}  // namespace gopt::optimizer
