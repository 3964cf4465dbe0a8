// By how much outputs of a quantized model may differ: where a sum lies between two integers, the order of its terms
// decides which one it is rounded to.
#pragma once

#include "gopt/compare.h"
#include "gopt/graph.h"

namespace gopt::driver {

// `tolerance` for this output: where it is quantized, one step of its scale; where it is computed from what is, the
// step of 8 bits. What no Quantize is before is compared as ever.
Tolerance tolerance_of_output(const Value& output, Tolerance tolerance);

}  // namespace gopt::driver
