// Attention on tiles (gopt_tile_kernel.h): softmax(scale query key + mask) value for each matrix of a batch, its scores
// of 32 lines of the query and a part of the keys at a time, which never leave the cache. Keys and values become tiles
// of right operands once for all lines of a matrix that a thread has; what a softmax gives is split into terms as lines
// of a left one. Of many keys a part at a time is looked at, and what was summed is scaled where a larger score comes,
// as in gopt_attention_rows.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gopt_attention_rows.h"
#include "gopt_post.h"
#include "gopt_tile_vectors.h"

namespace gopt_runtime {

class AttentionTiles {
 public:
  // Queries, keys and values of bfloat16 are of one term, those of floats of several. Without a unit all is computed in
  // floats, as a matrix is that has numbers that are not finite.
  AttentionTiles(const AttentionShape& shape, int threads, TileUnit unit, bool has_unit);

  size_t scratch_bytes() const;  // of what run() is given; 64-byte aligned
  // `mask` may be null.
  void run(const void* query, const void* key, const void* value, const float* mask, void* result, void* scratch) const;

 private:
  struct Operands {
    const void *query, *key, *value;
    const float* mask;
    void* result;
  };
  struct Room;  // of a thread, in its scratch
  // Returns what it takes of it, in bytes; `scratch` may be null.
  size_t divide(char* scratch, Room& room) const;
  int64_t line() const { return terms_ * kTileDepth; }

  void compute(const Operands& from, int64_t first_row, int64_t last_row, const Room& room) const;
  // False: they are to be computed in floats.
  bool compute_on_tiles(const Operands& from, int64_t first_row, int64_t last_row, const Room& room) const;
  void compute_in_floats(const Operands& from, int64_t first_row, int64_t last_row, const Room& room) const;
  // These return the largest magnitude, as SplitRow does.
  uint32_t fill_lines(const void* from, const AttentionMatrices& m, int64_t lines, int64_t block, int64_t depth,
                      uint16_t* to) const;
  uint32_t pack_keys(const void* key, const Room& room) const;
  uint32_t pack_values(const void* value, const Room& room) const;
  uint32_t pack_queries(const void* query, int64_t rows, const Room& room) const;
  void multiply(const uint16_t* lines, int64_t blocks, const uint16_t* tiles, int rows, float* sums) const;
  // Exponentials of these lines' scores for a part of the keys, in lines of terms; false where scores are not finite.
  bool take_exponentials(const float* mask, int64_t rows, int64_t key, const Room& room) const;
  void add_values(int64_t rows, int64_t key, const Room& room) const;
  void store(int64_t rows, void* result, const Room& room) const;
  void put_line(const float* from, void* result, int64_t line) const;

  AttentionShape s_;
  AttentionRows in_floats_;  // of one matrix whose operands lie one after another
  int terms_, threads_;
  TileUnit unit_;
  bool has_unit_;
  int64_t blocks_, key_blocks_, value_pairs_;  // of 32 elements of a line, keys, elements of a value
  int64_t groups_;                             // of lines of a matrix, that threads share
};

}  // namespace gopt_runtime
