// Sums whose rounding the model measures and puts back: TwoSum, FastTwoSum, Kahan's and Neumaier's sums, Dekker's
// splits, rounding by a large constant. s = a + b, t = s - a: over the reals t is b; in floats t - b is what s lost,
// and whoever puts s in another order than t is made in adds an error where one was taken away.
#pragma once

#include "gopt/graph.h"

namespace gopt::optimizer {

// By node: part of such a computation, or a sum that takes its result. No rewrite may touch those.
std::vector<bool> compensated_nodes(const Graph& graph);

}  // namespace gopt::optimizer
