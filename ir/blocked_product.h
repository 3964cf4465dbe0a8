// A matrix product in floats, by blocks that fit the caches. Where the elements of its operands lie is said by tables,
// so that convolutions and products of transposed or batched matrices are all of this form. contraction.h makes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gopt::ir {

// An element is 0, and is not read, where positions[p] + depth[k] is negative.
struct ProductGuard {
  std::vector<int64_t> positions, depth;
};

// Element (p, k) lies positions[p] + depth[k] floats from `data`, which may be unaligned.
struct ProductOperand {
  const std::byte* data = nullptr;
  std::vector<int64_t> positions, depth;
  std::vector<ProductGuard> guards;
};

// out[row, column] = sum over k of rows[row, k] * columns[column, k], for each batch at offsets of its own.
struct BlockedProduct {
  struct Batch {
    int64_t rows = 0, columns = 0, out = 0;
  };
  ProductOperand rows, columns;
  std::vector<int64_t> out_rows, out_columns;
  std::vector<Batch> batches;
};

// Sums are accumulated in floats. On all processors.
void evaluate_product(const BlockedProduct& product, float* out);

}  // namespace gopt::ir
