// The work of one node by its operator's definition: what planning prices, for who tells it.
#pragma once

#include "gopt/graph.h"

namespace gopt {

// Scalar operations of all outputs, in additions (operation_weight.h); moving data is none, symbolic extents count one.
// 0 for inputs, constants and nodes without a definition.
double scalar_operations(const Node& node);

}  // namespace gopt
