// Attention in loops of our own: softmax(scale query key + bias + mask) value for each matrix of a batch, with scores
// that may be replaced by a number before the sums or after them, without the
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

// A line of query and key has `depth` elements, one of value and result `value_depth`, one of the mask, of the bias and
// of the choice one for each key. Lines of query, value and result are in one piece.
struct AttentionShape {
  int64_t batch[3] = {1, 1, 1}, rows = 1, keys = 1, depth = 1, value_depth = 1;
  float scale = 1;
  AttentionMatrices query, key, value, result, mask, bias, choice;
  bool has_mask = false, has_bias = false;  // a bias beside a mask
  // Scores whose truth value is not `kept` are `otherwise`: before the mask and the bias are added, or after.
  bool has_choice = false, kept = true, chooses_last = false;
  float otherwise = 0;
  bool nan_is_zero = false;  // a line whose scores have no softmax (all masked, or one not a number) is zero
  int tile_terms = 0;        // on tiles (gopt_attention_tiles.h), floats as sums of so many terms; 0: in loops
  Element operands = Element::Float, result_element = Element::Float;  // masks are floats
};

// Of the whole tensors, or of one matrix of each. Mask, bias and choice (truth values in a byte each) may be null.
struct AttentionOperands {
  const float *query, *key, *value, *mask, *bias;
  const uint8_t* choice;
  float* result;
};

class AttentionRows {
 public:
  AttentionRows(const AttentionShape& shape, int threads);

  size_t scratch_floats() const { return static_cast<size_t>(threads_) * floats_a_thread(); }
  // `scratch` is aligned to 64 bytes.
  void run(const AttentionOperands& all, void* scratch) const;

 private:
  size_t floats_a_thread() const;
  template <int vectors>
  void compute(const AttentionOperands& from, int64_t first_row, int64_t rows, float* scratch) const;
  void compute(int vectors, const AttentionOperands& from, int64_t first_row, int64_t rows, float* scratch) const;
  void compute_few(const AttentionOperands& from, float* scratch) const;
  template <int vectors>
  void mask_scores(const AttentionOperands& from, int64_t first_row, int64_t rows, int64_t key, int64_t keys,
                   float* scores, float* masks, float scale, float* largest) const;
  template <int vectors>
  void choose_scores(const AttentionOperands& from, int64_t first_row, int64_t rows, int64_t key, int64_t keys,
                     float* scores, float* choices, float scale) const;
  void score_line(const AttentionOperands& from, int64_t row, int64_t key, int64_t keys, float* scores) const;

  AttentionShape s_;
  int threads_;
  bool has_few_;  // lines of the query
  int vectors_;   // of lines, of a block, where they are not few
  int64_t part_;  // keys that are looked at together
};

}  // namespace gopt_runtime
