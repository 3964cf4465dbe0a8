// Bodies that need not stay apart: the branch of an If whose condition is known, local functions of plain operators,
// and operators that ONNX itself says by a function.
#pragma once

#include "node_forms.h"

namespace gopt::ir {

// The branch that a constant condition takes; nothing where the condition is computed.
Result<MaybeValues> inline_if(ImportState& state, onnx::NodeProto& node, const NodeView& view);
// The function's body with its attributes filled in; nothing where it has to stay a call.
Result<MaybeValues> inline_function(ImportState& state, const NodeView& view, const onnx::FunctionProto& function);
// The same of the function that ONNX gives for the operator at this opset; nothing where it gives none, or one that has
// to stay a call.
Result<MaybeValues> inline_schema_function(ImportState& state, const NodeView& view);

}  // namespace gopt::ir
