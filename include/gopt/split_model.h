// A model some of whose nodes have no code, as pieces that have, and between them steps that are the caller's: what
// holds strings or sequences, extents that depend on data, operators that nobody here knows.
#pragma once

#include <string>
#include <vector>

#include "gopt/plan.h"

namespace gopt {

struct NodeWithoutCode {
  NodePtr node;
  std::string why;  // a sentence that names the node; empty: it only takes what such a node makes
};
// In the graph's order; none where it can be planned.
std::vector<NodeWithoutCode> nodes_without_code(const Graph& graph, const Target& target);
// Of these, each cause once: what make_plan() says.
Error why_no_plan(const std::vector<NodeWithoutCode>& nodes);
// Extents that a node broadcasts to each other, of which nothing says that they are equal or that one is 1: a mask's
// and that of a cache with what is appended to it.
struct MeetingExtents {
  AtomId symbol;      // that an input has by itself
  Index value;        // which it is where they are equal: a sum of others
  std::string where;  // "node `/And` (And)"
};
// In the graph's order, each solved for a symbol that no other has as its value; those that none solves are left out.
std::vector<MeetingExtents> meeting_extents(const Graph& graph);
// Open extents that inputs have by themselves, for targets whose code may leave them open; none for others.
std::vector<OpenExtent> own_extents(const Graph& graph, const Target& target);

struct ModelStep {
  // Its inputs and outputs bear the names of the plan's values. Of the caller's: nodes that hand each other what is no
  // tensor (a sequence) are in one step.
  Graph graph;
  std::vector<NodeWithoutCode> nodes;  // the caller's; none: it is code
  bool is_code() const { return nodes.empty(); }
};

struct SplitModel {
  struct Output {
    std::string name, value;  // as the model has it, and the plan
  };
  std::vector<Value> inputs;  // of the model, whose names are the plan's, too
  std::vector<Output> outputs;
  std::vector<ModelStep> steps;  // in the order in which they run
};

// As few pieces as nodes that wait for the caller's allow, each as large as it can be. Extents that a piece's inputs
// say only as expressions become symbols of their own there. Where no node has code all steps are the caller's. Errors:
// an output that is a constant of a type that nothing is computed with.
Result<SplitModel> split_model(const Graph& graph, const Target& target);

}  // namespace gopt
