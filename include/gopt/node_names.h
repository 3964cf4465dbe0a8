// Nodes as people name them.
#pragma once

#include <string>

#include "gopt/graph.h"

namespace gopt {

// Its name, else that of its first output that has one, else its operator.
std::string name_of_node(const Node& node);

// The node of that name, else the one with an output of that name. Errors: there is none; the names that are nearest.
Result<NodePtr> find_node(const Graph& graph, const std::string& name);

}  // namespace gopt
