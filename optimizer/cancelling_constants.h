// Whether a rewrite puts constants together that cancel: x + c - c, with c as large as what is to be rounded away,
// rounds x, and x + (c - c) does not.
#pragma once

#include "gopt/graph.h"

namespace gopt::optimizer {

// Whether the node adds or subtracts two small constants (or what is computed of such) and some element of the result
// is far below its terms, without being 0 because one of them is.
bool cancels_constants(const Node& node);

}  // namespace gopt::optimizer
