// Types of nodes that stay opaque, from libonnx's own inference, so that what follows them is known. Only where
// libonnx's version of the operator accepts the node as it is: a newer operator may mean more than it knows.
#pragma once

#include "import_state.h"

namespace gopt::ir {

// Types of the node's outputs; without an element type where nothing is known. `inputs` are those of the node, then
// those that its subgraphs capture, in the order of `names`.
std::vector<TensorType> infer_opaque_types(ImportState& state, const onnx::NodeProto& node,
                                           const std::vector<std::string>& names, const std::vector<Value>& inputs,
                                           const NameScope& scope);

}  // namespace gopt::ir
