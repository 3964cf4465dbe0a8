// Products by constant weights, and convolutions of one tap, in loops of our own: weights are packed in panels of two
// vectors of columns, in the order in which they are read; the sums of some rows by one panel stay in registers over
// the whole depth. The next panel is on its way while one is multiplied by. For products of many rows: of a few, see
// gopt_rows.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gopt_post.h"
#include "gopt_tiles.h"

namespace gopt_runtime {

// Rows that are equally far apart in source and result: of a matrix all, of an image in steps those of a line.
struct PanelShape {
  int64_t batch = 1, lines = 1, rows = 1;  // images; lines of each; rows of each line
  int64_t depth = 1, columns = 1;
  int64_t src_line = 0, src_row = 1;  // positions of the source from one to the next
};

struct Ahead;

class PanelProduct {
 public:
  // Both orders have channels of a block one after another, and are of floats.
  PanelProduct(const PanelShape& shape, const TileOrder& src, const TileOrder& dst, std::vector<Post> posts,
               int threads);

  // Whether blocks of so many channels are whole vectors.
  static bool takes_blocks_of(int64_t channels);
  static int64_t panel_columns();  // what the order of packed weights depends on
  size_t packed_floats() const;
  // A weight's number: row (of the depth) times row_stride plus column times column_stride.
  void pack(const float* weights, int64_t row_stride, int64_t column_stride, float* packed) const;

  // The operand of an Add lies as the result does, or, by Post::dims, is a number for each column.
  void bind_post(int post, const void* operand) { posts_[static_cast<size_t>(post)].operand = operand; }
  size_t scratch_floats() const;
  // `bias`, one for each column, may be null. `packed` and `scratch` are 64-byte aligned.
  void run(const float* src, const float* packed, const float* bias, float* dst, float* scratch) const;

 private:
  // Some rows of one line.
  struct Rows {
    int64_t src, dst;       // where the first lies, in elements
    int64_t number, count;  // of the first, among all rows
  };
  struct Part {
    size_t first, last;  // of blocks_
    int64_t first_panel, last_panel;
  };
  struct Call {
    const float *src, *packed, *bias;
    float *dst, *kept;  // kept: sums of parts of the depth, or null
  };
  struct Step;  // a block of rows by a panel: a part of the depth

  Part part_of(int thread, int threads) const;
  size_t blocks_near(const Part& part) const;
  int64_t depth_of_part() const;
  void compute(const Call& call, const Part& part) const;
  const float* next_panel(const Call& call, const Part& part, const Step& step) const;
  Ahead next_rows(const Call& call, const Step& step) const;
  void compute(const Call& call, const Step& step) const;
  void finish(const Call& call, const Rows& rows, int64_t panel, float* sums) const;
  void add(const Post& post, const float* dst, const Rows& rows, int64_t panel, float* sums) const;
  bool is_one_block() const;  // a row's numbers lie one after another
  bool is_one_run() const;    // its vectors are equally far apart
  bool is_of_columns(const Post& post) const;
  bool is_whole(const Post& post) const;  // an Add of as many numbers as there are results
  int vectors_of(int64_t panel) const;
  int64_t columns_at(int64_t column, int64_t most) const;  // that there are from there on

  PanelShape s_;
  TileOrder src_, dst_;
  std::vector<Post> posts_;
  int threads_;
  int64_t filled_, panels_;  // filled_: columns that are written
  std::vector<Rows> blocks_;
  SimplePosts simple_;
};

}  // namespace gopt_runtime
