// Why rules do not apply to a graph: those whose left side occurs in it but for one thing, with what that is. The same
// walk as the search's (optimizer/matching/pattern_matcher.h), so that what is said here is what stands in its way.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gopt/optimizer.h"

namespace gopt {

// The one thing. Of several for one rule at one node the first of these is reported.
enum class Obstacle {
  Marks,      // it matches, but has a mark that has to be allowed
  OtherUser,  // it matches, but a value inside is used elsewhere too: that stays to be computed
  Condition,  // the rule's condition is false
  Undecided,  // its condition or an equation of its sizes is not known to hold
  Cycle,      // its roots depend on one another
  Rounding,   // two of its variables are one value, or a sum whose rounding is measured is touched
  Sharing,    // a value of the rule is met as two in the graph
  Weight,     // a weight of the rule is an activation
  Extent,     // of a variable
  Type,       // of elements
  Constant,
  Axis,       // axis, axes or perm
  Attribute,  // any other
  Rank,       // with what follows from it: axes and extents that do not fit
  Input,      // one that the rule leaves out is there, or one that it has is left out: a bias
  Output,     // of another number, or of a node of more or fewer
  Between,    // the rule's operator is there, behind another
  Node,       // another operator, or none
};
std::string_view name_of(Obstacle obstacle);  // "other user"
const std::vector<Obstacle>& all_obstacles();

struct NearMiss {
  std::string rule;
  std::string family;  // "hand", "any rank", or the family of the generator that it is from
  std::string node;    // where its first root would be
  Obstacle obstacle;
  std::string expected, found;
};

struct NearMisses {
  std::vector<NearMiss> misses;        // in the order of the rules, of a rule's in the order of nodes
  std::map<std::string, int> matches;  // rules that occur as they are, by name, with the number of roots
};

struct NearMissOptions {
  int least_nodes = 2;  // of the left side that have to be found, constants not counted
  std::string node;     // as NearMiss names it: nothing is looked for elsewhere; empty: at every node
};

// For each rule and each node, the first obstacle, where that is the only one. The graph is looked at as the search
// begins with it. Rules are left out that need an operator which neither the graph nor another rule's right side has.
Result<NearMisses> find_near_misses(const Graph& graph, const std::vector<RewriteRule>& rules,
                                    const NearMissOptions& options = {});

}  // namespace gopt
