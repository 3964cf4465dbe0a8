// Whether a graph computes the rows of its outputs one by one, each from the rows of its inputs with the same number: a
// model over a batch that does not mix what is in it. Such a model may be run in parts.
#pragma once

#include <optional>
#include <string>

#include "gopt/graph.h"

namespace gopt {

// By the definitions of its nodes, for every size of the symbolic extent: nothing where each input that has it, as its
// first extent, and each output, whose first extent is a multiple of it, may be cut along that axis, so that the
// outputs of the parts, one after another, are the outputs of the whole. Inputs and outputs without it are those of
// every part. Else why that is not known, with the node.
std::optional<std::string> why_rows_depend(const Graph& graph, AtomId extent);

}  // namespace gopt
