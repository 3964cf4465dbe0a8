// What libraries have kernels for: convolutions and products of matrices.
#pragma once

#include "gopt/graph.h"

namespace gopt::planner {

// Conv, ConvTranspose, MatMul and Gemm.
bool is_product(const Node& node);

// The multiply-adds of one, counted two; a tensor without static shape counts as if it had so many elements.
double product_operations(const Node& node, int64_t elements_otherwise = 1);

}  // namespace gopt::planner
