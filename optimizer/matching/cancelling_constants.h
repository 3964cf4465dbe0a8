// Whether a rewrite puts constants together that cancel: x + c - c, with c as large as what is to be rounded away,
// rounds x, and x + (c - c) does not. Or makes one of them that its type does not hold: x / 1e30 / 1e30.
#pragma once

#include "gopt/graph.h"

namespace gopt::optimizer {

// Whether the node adds or subtracts two small constants (or what is computed of such) and some element of the result
// is far below its terms; or multiplies or divides them, or takes a reciprocal, and some element vanishes; or does any
// of these, and some element overflows.
bool loses_constants(const Node& node);

}  // namespace gopt::optimizer
