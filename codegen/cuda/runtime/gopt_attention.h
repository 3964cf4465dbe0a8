// Attention in one kernel on the tensor cores: what a launch needs.
#pragma once

#include "gopt_element.h"

namespace gopt_runtime {

// result[row] = softmax over keys of (scale query[row] . key[k] + mask[row, k] + bias[row, k]) times value[k], for each
// of a batch of matrices. Steps are in elements; a line of query, key, value and result is in one piece. Scores may be
// chosen: those whose truth value is not `kept` are `otherwise`, before or after what is added.
struct AttentionProblem {
  struct Matrices {
    int64_t batch[3] = {0, 0, 0};  // from one matrix to the next, along each axis of the batch
    int64_t line = 0;
  };
  const void *query_data = nullptr, *key_data = nullptr, *value_data = nullptr, *mask_data = nullptr,
             *bias_data = nullptr, *choice_data = nullptr;
  void* result_data = nullptr;
  int batch[3] = {1, 1, 1};
  int rows = 0, keys = 0, depth = 0, value_depth = 0;
  int row_tiles = 0, tile_rows = 0;  // lines of a block: sixteen for each of its row warps
  int split = 1;                     // blocks, of a cluster, that share the keys; the launch may have fewer
  int stages = 2;                    // of keys and values in shared memory: two, or as many as hold all
  Matrices query, key, value, mask, bias, choice, result;
  int mask_step = 0, bias_step = 0, choice_step = 0;  // from one key's element to the next
  float scale = 1, otherwise = 0;
  bool kept = true, chooses_first = true;
  Element mask_element = Element::Float32, bias_element = Element::Float32, result_element = Element::Float32;
  bool nan_is_zero = false;  // a line without a softmax
  bool is_aligned = false;   // four elements of the result at a time
};

}  // namespace gopt_runtime
