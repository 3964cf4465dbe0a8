// The attributes of a node without definition, for who calls a function for it.
#pragma once

#include <string>

#include "gopt/graph.h"

namespace gopt {

// Those that are numbers, text, or tensors of numbers, and lists of these, by name: floats as they are in the file, an
// integer for each Index. Graphs (the bodies of an If) are left out, as are lists of tensors. None where the operator
// was not read from a file. Errors: a tensor whose data does not fit its extents.
Result<Attributes> attributes_of(const OpaqueOp& op);

}  // namespace gopt
