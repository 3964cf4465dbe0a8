// Numbers in an e-graph: an application to scalar constants is equal to the constant that it computes.
#pragma once

#include "equality/equality_graph.h"

namespace gopt::optimizer {

// Only where the numbers say exactly what the reals would: sums, products, maxima and minima of small fractions of a
// power of two.
void fold_numbers(EqualityGraph& graph);

}  // namespace gopt::optimizer
