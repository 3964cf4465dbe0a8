// Some nodes of a graph as a graph of their own.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "gopt/graph.h"

namespace gopt {

struct Excerpt {
  Graph graph;                         // weights are as they were
  std::vector<Value> inputs, outputs;  // values of the whole that its inputs and outputs stand for, in their order
  std::unordered_map<NodePtr, NodePtr> copies;  // by node of the whole

  Value of(const Value& value) const;  // in the excerpt; a weight is as it was
};

// What comes from other nodes is an input, what they use (or the graph gives out) an output. Weights among `chosen` are
// left out, and inputs of the graph are inputs.
Excerpt excerpt_of(const Graph& graph, const std::set<NodeId>& chosen);

struct Replacement {
  const Excerpt* excerpt;
  const Graph* graph;
};
struct Replaced {
  Graph graph;
  ValueMap became;              // as replace_values says
  std::vector<ValueMap> built;  // by replacement: values of its graph, as they were put in
};
// The graph with each excerpt replaced by a graph of the same inputs and outputs. Excerpts share no node, and no path
// leaves one and comes back. Errors: those of replace_values.
Result<Replaced> with_replaced(const Graph& graph, const std::vector<Replacement>& replacements);

}  // namespace gopt
