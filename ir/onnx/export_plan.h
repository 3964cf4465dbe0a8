// What of a graph is written as nodes and what as initializers.
#pragma once

#include <vector>

#include "export_state.h"

namespace gopt::ir {

struct ExportPlan {
  std::vector<NodePtr> nodes;       // to be written, in order
  std::vector<Value> initializers;  // constants and folded values, in order of first use
};

// What the outputs need. What is computed of constants alone is folded where the file grows little by it; large moved
// copies of a weight that the file holds anyway are not made.
ExportPlan plan_export(const ExportState& state);

}  // namespace gopt::ir
