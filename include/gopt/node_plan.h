// What a plan makes of one node, and what else the planner priced: for people who ask why a node was fused or not.
#pragma once

#include <string>
#include <vector>

#include "gopt/plan.h"

namespace gopt {

enum class NodeRole {
  Input,
  Folded,     // depends on weights alone: computed once, when code is made
  View,       // no computation: its result lies inside another value
  Library,    // a library kernel is made for it
  Epilogue,   // a step of a library kernel, done before its result is stored
  Inlined,    // computed inside its users' kernels
  Own,        // a generated kernel ends in it
  Unplanned,  // there is no code for it
};
std::string to_string(NodeRole role);

// Why what a node makes is stored, and not handed on inside the kernel.
enum class FusionLimit {
  None,            // it is not stored
  Output,          // of the graph
  Unused,          // by nodes that run
  LibraryUser,     // a user is a library kernel, or looks elements up by it
  SeveralUsers,    // of a library kernel's result
  UserNoEpilogue,  // no library kernel does what the user does
  ActivationLast,  // a library kernel ends in its first activation
  ReadAgain,       // several users would each read its large inputs
  SeveralOutputs,  // that are used
  SwitchedOff,     // plans are to be made without fusion of this kind
  KernelFull,      // the users' kernel has as many nodes or inputs as one may have
  Reduction,       // whose user reads elements more than once, or is not elementwise on the same shape
  ComputedAgain,   // more often than storing it costs
  Costs,           // by the times of the kernels with it and without
};
std::string to_string(FusionLimit limit);

// A way to run a kernel that covers the node, as the planner priced it.
struct KernelOption {
  std::vector<std::string> covers;  // nodes, in order
  Layout layout;                    // of its result
  std::string implementation;       // empty: the only one
  double time_ms = 0;
  bool is_chosen = false;
};

// What it would cost to have a value that the chosen kernel reads or writes in another layout.
struct ConversionOption {
  std::string value;
  Layout from, to;
  double time_ms = 0;
};

// The whole graph with one layout wherever there is a choice, or the best one for each class of values.
struct PlanOption {
  std::string layouts;  // "blocked16"; "mixed"
  double time_ms = 0;
  bool is_chosen = false;
};

// A way to fuse the node, where the planner's rules left that to the kernels' times.
struct FusionOption {
  std::string way;     // "stored", "inside its users", "a step of the library kernel", "apart from the library kernel"
  double time_ms = 0;  // of all kernels that it concerns; infinite: one of them was never timed
  bool is_least = false;  // it takes more: that is one of the kernels alone
  bool is_chosen = false;
};

struct NodePlan {
  NodeRole role = NodeRole::Own;
  FusionLimit limit = FusionLimit::None;  // of the kernel's end where it is an epilogue
  std::vector<std::string> kernels;       // that cover it in the cheapest plan, as print_plan has them
  std::vector<KernelOption> options;      // chosen ones first, the others by time
  std::vector<FusionOption> fusion;       // none, or two: chosen first
  std::vector<ConversionOption> conversions;
  std::vector<PlanOption> plans;
};

// Symbolic extents are taken to be of some size, and what has no code is left out, as costs of graphs do. Precondition:
// the graph contains the node.
NodePlan plan_of_node(const Graph& graph, const NodePtr& node, const Target& target, KernelCosts& costs);

}  // namespace gopt
