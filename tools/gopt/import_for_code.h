// Models as code is made of them.
#pragma once

#include "gopt/onnx.h"

namespace gopt::cli {

// As import_onnx(). Extents of inputs that a node broadcasts to each other are taken to be equal (meeting_extents()),
// where fewer nodes are without code for any size then; those at the same axes of inputs, where none is then. A warning
// says of each what it is taken to be. Code refuses inputs in which it is not.
Result<ImportedModel> import_for_any_size(const std::string& path, const ImportOptions& options);

// Nodes that have no code for any size of what `graph` leaves open on a CPU.
size_t count_without_code(const Graph& graph);

}  // namespace gopt::cli
