// A kernel's loops, cut and joined before they are printed: merging of loops that walk memory together, and boxes in
// which guards are decided.
#pragma once

#include <vector>

#include "lower.h"

namespace gopt::codegen {

// Splits loops where a floor division asks for it (what is left over is a body of its own), and merges neighbouring
// loops and binders that every index walks as one.
std::vector<KernelBody> reshape_loops(const KernelBody& body);

// The body on parts of its range, in each of which the guards outside reductions are decided, as far as that takes few
// parts.
std::vector<KernelBody> split_into_boxes(const KernelBody& body);

}  // namespace gopt::codegen
