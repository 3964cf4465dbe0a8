// Bodies that need not stay apart: the branch of an If whose condition is known, and local functions of plain
// operators.
#pragma once

#include "node_forms.h"

namespace gopt::ir {

// The branch that a constant condition takes; nothing where the condition is computed.
Result<MaybeValues> inline_if(ImportState& state, onnx::NodeProto& node, const NodeView& view);
// The function's body with its attributes filled in; nothing where it has to stay a call.
Result<MaybeValues> inline_function(ImportState& state, const NodeView& view, const onnx::FunctionProto& function);

}  // namespace gopt::ir
