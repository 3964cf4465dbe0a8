// Writes a model file: the small part from its message, the tensors after it one at a time, in the file or beside it.
// What is written appears under its name only when it is whole.
#pragma once

#include "export_state.h"
#include "gopt/temporary.h"

namespace gopt::ir {

// Adds the file, and that of its weights, to `staged`. Errors: as export_onnx; a weight-only value that cannot be
// evaluated, by name.
Status stream_model(const onnx::ModelProto& head, const onnx::GraphProto& graph,
                    const std::vector<PendingTensor>& tensors, const std::string& path, const ExportOptions& options,
                    StagedFiles& staged);

}  // namespace gopt::ir
