// Scalar operations of a node by its definition, whatever it is run by. Extents that are not static count one.
#pragma once

#include "gopt/graph.h"

namespace gopt::planner {

// Conv, ConvTranspose, MatMul and Gemm: what libraries have kernels for.
bool is_product(const Node& node);

// Nothing for what moves data alone. Kept by structural hash, since a search asks for the same nodes again and again.
double node_operations(const Node& node);

// The multiply-adds of a product, counted two; of an output without static shape, as if it had so many elements.
double product_operations(const Node& node, int64_t elements_otherwise = 1);

}  // namespace gopt::planner
