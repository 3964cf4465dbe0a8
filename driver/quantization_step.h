// By how much outputs of a quantized model may differ: where a sum lies between two integers, the order of its terms
// decides which one it is rounded to.
#pragma once

#include "gopt/compare.h"
#include "gopt/graph.h"

namespace gopt::driver {

// Whether some value is rounded to integers.
bool is_quantized(const Graph& graph);

// `tolerance` for this output: where it is quantized, one step of its scale; where it is computed from what is, the
// step of 8 bits; where it is computed from floats of 16 bits, what their roundings add up to. Others are compared as
// ever.
Tolerance tolerance_of_output(const Value& output, Tolerance tolerance);

// The same graph but for the scales of its Quantize nodes, which are larger by a few roundings of a float: by what its
// outputs change then, those of other code may be off, beside what tolerance_of_output says: a step between two layers
// becomes several after more of them.
Result<Graph> nudged(const Graph& graph);

}  // namespace gopt::driver
