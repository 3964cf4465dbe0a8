// What a product by quantized weights is given (gopt_quantized_vectors.cuh): a tile whose weights are words of numbers.
#pragma once

#include "gopt_tile_problem.h"

namespace gopt_runtime {

struct QuantizedProblem {
  TileProblem tile;
  QuantizedNumbers numbers;
  const void *scales = nullptr, *zeros = nullptr;
};

}  // namespace gopt_runtime
