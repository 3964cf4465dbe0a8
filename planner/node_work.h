// What computing a node takes, from its operator's definition.
#pragma once

#include "gopt/graph.h"

namespace gopt::planner {

struct NodeWork {
  double operations = 0;  // scalar ones, of all outputs; symbolic extents count one; moving data is none
  bool reduces = false;   // an element of the output combines many elements of an input
};
// Kept by the node's structural hash, in each thread: a search asks for the same nodes again and again.
const NodeWork& work_of(const Node& node);

}  // namespace gopt::planner
