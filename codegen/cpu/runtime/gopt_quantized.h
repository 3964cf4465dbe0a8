// Products of floats by constant weights of 4 or 8 bits with a scale, and a zero point, for some rows of a column
// ("weight-only" quantization of language models, blocks of GPTQ and AWQ). A product of a few rows takes as long as
// reading its weights: they stay as they are in memory, in the order in which they are read, and become floats in
// registers, (number - zero) scale. Of many rows a panel becomes floats once, which gopt_panels.h multiplies by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gopt_panels.h"
#include "gopt_post.h"
#include "gopt_rows.h"

namespace gopt_runtime {

struct QuantizedShape {
  int64_t rows = 1, depth = 1, columns = 1;
  int bits = 8;       // 4 or 8
  int64_t block = 1;  // rows of the weights that have a scale in common: a multiple of 8, or all
};

// Weights [depth, columns] as they are given: a byte each. Strides are in elements, 0 where all are one.
struct QuantizedWeights {
  const void* numbers = nullptr;
  bool is_signed = false;  // of 4 bits: from -8 to 7
  int64_t row = 0, column = 0;
  const float* scales = nullptr;  // of blocks of rows
  int64_t scale_row = 0, scale_column = 0;
  const void* zeros = nullptr;  // of the type of the weights, of blocks of rows; null: all are `zero`
  int64_t zero_row = 0, zero_column = 0;
  int zero = 0;
};

// dst [rows, columns] = src [rows, depth] times weights [depth, columns], then posts.
class QuantizedProduct {
 public:
  // What `weights` point to is read by pack() alone.
  QuantizedProduct(const QuantizedShape& shape, const QuantizedWeights& weights, std::vector<Post> posts, int threads,
                   Element result = Element::Float);

  size_t packed_bytes() const { return static_cast<size_t>(panels_ * panel_bytes_); }
  // All that packed weights depend on, beside the shape and the numbers.
  std::vector<int64_t> packed_form() const;
  void pack(void* packed) const;

  // The operand of a Sum or Add has the result's shape, or, by Post::dims, one row.
  void bind_post(int post, const void* operand) { result_.bind_post(post, operand); }
  size_t scratch_floats() const;
  // src and dst are dense; `bias`, one for each column, may be null. `packed` and `scratch` are 64-byte aligned.
  void run(const float* src, const void* packed, const float* bias, void* dst, float* scratch) const;

 private:
  // Of one panel: its scales, zero points where blocks have their own, and numbers.
  const char* panel(const void* packed, int64_t number) const {
    return static_cast<const char*>(packed) + number * panel_bytes_;
  }
  int zero_at(int64_t block, int64_t column) const;
  int least() const { return w_.is_signed ? -(1 << (s_.bits - 1)) : 0; }  // number
  int common_zero() const { return w_.zero - least(); }
  size_t scratch_of_thread() const;
  void widen(const char* from, float* panels) const;
  void run_panels(const float* src, const void* packed, const float* bias, void* dst, float* scratch) const;

  QuantizedShape s_;
  QuantizedWeights w_;
  int64_t step_, steps_;  // rows of the weights, of one block, whose numbers follow their scales; in all
  int64_t step_bytes_, panel_bytes_, panels_;
  RowsResult result_;
  int threads_;
  std::optional<PanelProduct> by_floats_;  // of a panel
};

}  // namespace gopt_runtime
