// What planning knows of a node, from its operator's definition. No operator is named: one that is added plans as one
// that has always been there.
#pragma once

#include <vector>

#include "gopt/graph.h"

namespace gopt::planner {

struct NodeWork {
  double operations = 0;  // scalar ones, of all outputs; symbolic extents count one; moving data is none
  bool reduces = false;   // an element of the output combines many elements of an input
  // Of one element of output 0, reductions apart, and apart from what is the same along an axis.
  double operations_an_element = 0;
  // reads[output][input]: elements that are read, each as often as it is.
  std::vector<std::vector<Index>> reads;
  std::vector<bool> is_index;   // by input: its elements are used as subscripts
  bool follows_layout = false;  // each output may lie as the images do that it is made of (access.h says when)
  bool keeps_order = false;     // the elements of input 0 in their order: Reshape, and what else moves nothing
  // By output, of one that only moves elements of input 0: the subscripts that an element is read at, over
  // axis_symbols() of the output; else empty.
  std::vector<std::vector<Index>> moved_from;
};
// Kept in each thread, by the node's structural hash and by what its definition is asked with: a search asks for the
// same nodes again and again.
const NodeWork& work_of(const Node& node);

}  // namespace gopt::planner
