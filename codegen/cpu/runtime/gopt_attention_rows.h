// Attention in loops of our own: softmax(scale query key + bias + mask) value for each matrix of a batch, without the
// scores ever leaving the cache. Lanes are lines of the query: scores, their largest, exponentials and sums of as many
// lines are made side by side, and keys and values are read where they lie, one element for all of them. Of many keys a
// part at a time is looked at, and what was summed is scaled where a larger score comes (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", 2018). Of a few lines of the query, as a decoder has them, lanes are
// elements of a line of keys and values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gopt_post.h"

namespace gopt_runtime {

// Matrices in memory, by steps in elements: of each axis of the batch (0: the same one again), from line to line, and
// within a line.
struct AttentionMatrices {
  int64_t offset = 0, batch[3] = {0, 0, 0}, line = 0, element = 1;
};

// A line of query and key has `depth` elements, one of value and result `value_depth`, one of the mask and of the bias
// one for each key. Lines of query, value and result are in one piece.
struct AttentionShape {
  int64_t batch[3] = {1, 1, 1}, rows = 1, keys = 1, depth = 1, value_depth = 1;
  float scale = 1;
  AttentionMatrices query, key, value, result, mask, bias;
  bool has_mask = false, has_bias = false;  // a bias beside a mask
  bool nan_is_zero = false;  // a line whose scores have no softmax (all masked, or one not a number) is zero
  int tile_terms = 0;        // on tiles (gopt_attention_tiles.h), floats as sums of so many terms; 0: in loops
  Element operands = Element::Float, result_element = Element::Float;  // masks are floats
};

class AttentionRows {
 public:
  AttentionRows(const AttentionShape& shape, int threads);

  size_t scratch_floats() const { return static_cast<size_t>(threads_) * floats_a_thread(); }
  // `mask` and `bias` may be null. `scratch` is aligned to 64 bytes.
  void run(const float* query, const float* key, const float* value, const float* mask, const float* bias,
           float* result, void* scratch) const;

 private:
  struct Operands {
    const float *query, *key, *value, *mask, *bias;
    float* result;
  };
  size_t floats_a_thread() const;
  template <int vectors>
  void compute(const Operands& from, int64_t first_row, int64_t rows, float* scratch) const;
  void compute(int vectors, const Operands& from, int64_t first_row, int64_t rows, float* scratch) const;
  void compute_few(const Operands& from, float* scratch) const;

  AttentionShape s_;
  int threads_;
  bool has_few_;  // lines of the query
  int vectors_;   // of lines, of a block, where they are not few
  int64_t part_;  // keys that are looked at together
};

}  // namespace gopt_runtime
