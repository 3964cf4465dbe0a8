// Products of a few rows by constant weights, in loops of our own. Such a product takes as long as reading its weights
// does: they are packed in the order in which they are read, panel by panel of columns, and each is read once for all
// rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gopt_few_rows.h"
#include "gopt_post.h"

namespace gopt_runtime {

// dst [rows, columns] = src [rows, depth] times weights [depth, columns], then posts.
class RowsProduct {
 public:
  // Precondition: 1 <= rows <= kMostRows.
  RowsProduct(int64_t rows, int64_t depth, int64_t columns, std::vector<Post> posts, int threads);

  size_t packed_floats() const;
  int64_t panel_columns() const { return width_; }  // what the order of packed weights depends on
  // Strides are in elements.
  void pack(const float* weights, int64_t row_stride, int64_t column_stride, float* packed) const;

  // The operand of a Sum or Add has the result's shape, or, by Post::dims, one row.
  void bind_post(int post, const void* operand) { posts_[static_cast<size_t>(post)].operand = operand; }
  // src and dst are dense; `bias`, one for each column, may be null.
  void run(const float* src, const float* packed, const float* bias, float* dst) const;

 private:
  void store(int64_t panel, float* sums, const float* bias, float* dst) const;

  int64_t rows_, depth_, columns_, width_, panels_;  // width_: columns of a panel
  std::vector<Post> posts_;
  int threads_;
};

}  // namespace gopt_runtime
