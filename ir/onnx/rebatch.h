// Models whose extents are numbers, at another batch: constants that hold the old batch follow the new one.
#pragma once

#include "node_forms.h"

namespace gopt::ir {

// Changes a node's attributes and inputs, where they hold extents that --shape changes, to what the changed inputs ask
// for. Errors: a Reshape in which the changed extent cannot be found.
Status rebatch_node(ImportState& state, const NodeView& view, OpKind kind, Values& inputs, Attributes& attributes);

}  // namespace gopt::ir
