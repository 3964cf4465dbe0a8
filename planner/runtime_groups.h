// What an ONNX runtime makes one kernel of: the nodes that every runtime fuses itself. A rewrite that breaks such a
// group costs what the group saved. The tables in runtime_groups.cc say which nodes these are; runtime_cost.cc prices
// groups.
#pragma once

#include <vector>

#include "gopt/graph.h"

namespace gopt::planner {

struct RuntimeGroup {
  std::vector<NodePtr> nodes;  // in the graph's order
  NodePtr head;                // what its kernel is named by: the product, or the last node of a pattern
};

// The groups of all nodes that run (not of weights alone, which a runtime folds), each after those that it reads.
std::vector<RuntimeGroup> runtime_groups(const Graph& graph);

}  // namespace gopt::planner
