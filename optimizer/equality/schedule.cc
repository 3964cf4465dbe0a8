#include "equality/schedule.h"

#include <algorithm>

namespace gopt::optimizer {
namespace {

std::vector<uint32_t> key_of(const EqualityGraph& graph, const EqualityMatch& match) {
  std::vector<uint32_t> key;
  for (EqualityId root : match.roots) key.push_back(root == kNoValue ? kNoValue : graph.find(root));
  for (EqualityId variable : match.variables) key.push_back(graph.find(variable));
  for (const MatchedNode& node : match.nodes) key.push_back(graph.node(node.any()).attributes);
  return key;
}

}  // namespace

std::vector<EqualityMatch> PatternSchedule::new_matches(const EqualityGraph& graph, int iteration, size_t most,
                                                        bool any_kind) {
  most <<= rests_;
  MatchLimits limits;
  limits.any_kind = any_kind;
  limits.matches = 50 * most;
  EqualityMatches matches = find_matches(graph, *pattern_, limits);
  std::vector<EqualityMatch> found;
  for (EqualityMatch& match : matches.found)
    if (given_.insert(key_of(graph, match)).second) found.push_back(std::move(match));
  if (found.size() > most || matches.is_cut) {
    found.resize(std::min(found.size(), most));
    rests_until_ = iteration + 1 + (2 << rests_++);
    given_.clear();
  }
  return found;
}

}  // namespace gopt::optimizer
