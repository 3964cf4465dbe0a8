// Products of a few rows by constant weights, in loops of our own. Such a product takes as long as reading its weights
// does: they are packed in the order in which they are read, panel by panel of columns, and each is read once for all
// rows. Floats, or bfloat16 that are multiplied and summed as floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gopt_few_rows.h"
#include "gopt_post.h"

namespace gopt_runtime {

// What is done to sums of rows by a panel of columns before they are stored: a bias, then posts.
class RowsResult {
 public:
  RowsResult(int64_t columns, std::vector<Post> posts, Element element)
      : columns_(columns), posts_(std::move(posts)), element_(element) {}

  void bind_post(int post, const void* operand) { posts_[static_cast<size_t>(post)].operand = operand; }
  // Of so many rows from `row` on, columns from `column` on, up to `width` of them. Sums, `width` a row, change.
  void store(int64_t row, int64_t rows, int64_t column, int64_t width, float* sums, const float* bias, void* dst) const;

 private:
  int64_t columns_;
  std::vector<Post> posts_;
  Element element_;
};

// dst [rows, columns] = src [rows, depth] times weights [depth, columns], then posts.
class RowsProduct {
 public:
  // Precondition: 1 <= rows <= kMostRows. `operands`: of src and weights.
  RowsProduct(int64_t rows, int64_t depth, int64_t columns, std::vector<Post> posts, int threads,
              Element operands = Element::Float, Element result = Element::Float);

  size_t packed_bytes() const;
  int64_t panel_columns() const { return width_; }  // what the order of packed weights depends on
  // Strides are in elements.
  void pack(const void* weights, int64_t row_stride, int64_t column_stride, void* packed) const;

  // The operand of a Sum or Add has the result's shape and type, or, by Post::dims, one row.
  void bind_post(int post, const void* operand) { result_.bind_post(post, operand); }
  // src and dst are dense; `bias`, one for each column, may be null.
  void run(const void* src, const void* packed, const float* bias, void* dst) const;

 private:
  template <class T>
  void pack_as(const T* weights, int64_t row_stride, int64_t column_stride, T* packed) const;

  int64_t rows_, depth_, columns_, width_, panels_;  // width_: columns of a panel
  int threads_;
  Element operands_;
  RowsResult result_;
};

}  // namespace gopt_runtime
