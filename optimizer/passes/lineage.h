// What became of the nodes of a graph through passes and rewrites: of each node of the last graph, which of the first
// it stands for. Graphs that are made again of the same parts have their nodes in the same order, so that nodes are
// told apart by their positions.
#pragma once

#include <set>
#include <vector>

#include "gopt/graph.h"

namespace gopt::optimizer {

// Where one rule was applied.
struct RuleUse {
  std::vector<NodePtr> matched;  // nodes of the graph before
  std::vector<NodePtr> made;     // of the right side, as they were built
};

// From one graph to the next.
struct RewriteStep {
  Graph before, after;
  ValueMap became;  // as replace_values says
  std::vector<RuleUse> uses;
  std::vector<RuleUse> others = {};  // nodes that took the place of others by no rule of this step's own
};

class Lineage {
 public:
  explicit Lineage(const Graph& first);
  void follow(const RewriteStep& step);  // from the last graph

  // By node of the last graph: those of the first whose values it gives, or in whose place a rule put it.
  std::vector<std::vector<NodeId>> origins() const;
  // Of a rule's use, counted over all steps: nodes of the first graph that it took the place of, and nodes of the last
  // that have come of what it made.
  std::vector<NodeId> replaced(size_t use) const;
  std::vector<NodeId> made(size_t use) const;

 private:
  using Nodes = std::set<NodeId>;
  struct Traced {
    Nodes replaced, made;
  };
  std::vector<Nodes> origins_;
  std::vector<Traced> uses_;
};

}  // namespace gopt::optimizer
