// Convolutions, and products by constant weights, on tiles (gopt_tile_kernel.h). Each thread has a rectangle of
// results. So many rows of it as stay near the core are copied with their border, split into terms: 32 channels of a
// position are a line, positions follow one another, the phases of a stride apart. 16 lines in a row are a tile, and a
// tap is an offset, so that nothing is unfolded; results at the border are computed and left out. A product is a
// convolution of one tap whose positions are its rows; bfloat16 rows of it are read where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gopt_post.h"
#include "gopt_tile_vectors.h"

namespace gopt_runtime {

// Extents of three axes; those that are not there come first and are 1.
struct TileShape {
  int64_t batch = 1, in = 1, out = 1;  // channels of all groups
  int64_t src[3] = {1, 1, 1}, dst[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t strides[3] = {1, 1, 1}, dilations[3] = {1, 1, 1}, pads[3] = {0, 0, 0};
  int64_t groups = 1;  // several: as groups_fill_tiles()
};

// Where an image's elements lie: elements to the next image, position, block of channels, channel of these.
struct TileOrder {
  int64_t image, position, block, channel;
  Element element = Element::Float;
  bool fills_blocks = false;  // the last block is there, its channels that are none are zeros
  int64_t channels = 16;      // of a block; tiles take no other
};

struct TileWeights {
  const void* data;
  int64_t out, in, tap;  // elements from one to the next
  Element element = Element::Float;
};

// Bytes of lines that stay in a core's cache beside the weights that pass by.
constexpr int64_t kNearTiles = int64_t{5} << 17;

class TileConvolution {
 public:
  // Sources and weights of bfloat16 are of one term.
  TileConvolution(const TileShape& shape, const TileOrder& src, const TileOrder& dst, int terms,
                  std::vector<Post> posts, int threads, TileUnit unit, int64_t near = kNearTiles);

  // Whether products by terms are those by the weights: all are finite, and none is rounded to infinity.
  bool takes(const TileWeights& weights) const;
  size_t packed_bytes() const;
  void pack(const TileWeights& weights, void* packed) const;
  size_t scratch_bytes() const;  // of what run() is given; 64-byte aligned, as `packed` is

  // The operand of an Add lies as the result does, or, by Post::dims, is a number for each channel.
  void bind_post(int post, const void* operand) { posts_[static_cast<size_t>(post)].operand = operand; }
  // `bias`, one for each channel, may be null.
  void run(const void* src, const void* packed, const float* bias, void* dst, void* scratch) const;

 private:
  struct Part;  // what one thread computes
  struct Call {
    const void* src;
    const uint16_t* packed;
    const float* bias;
    void* dst;
  };
  // What tiles of rows are read from, from `first` on, of some blocks of channels.
  struct Lines {
    const uint16_t* data;
    int64_t line, block;  // elements from a position, a block of channels, to the next
    int64_t first;        // row of tiles
    int64_t first_block;  // of channels
    const int64_t* taps;  // lines
    bool has_again;       // a plane more, for what is not finite
    bool is_by_numbers;   // groups, not all finite, which are not to be multiplied by each other's zeros
  };
  struct Range {
    int64_t first, last;
  };

  // Rounded up, of any sign.
  static constexpr int64_t ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }
  void describe_axes();
  void add_positions();
  void divide(int64_t near);
  Part part_of(int thread, int threads) const;
  // Elements of a position's line.
  int64_t line(bool has_again) const { return (has_again && terms_ > 1 ? terms_ + 1 : terms_) * kTileDepth; }
  // Elements from a weight of the first channel and tap to this channel's of this tap.
  int64_t weight_offset(const TileWeights& w, int64_t channel, int64_t tap) const {
    const int64_t channels = s_.in / s_.groups / folded_;
    return channel % channels * w.in + (tap * folded_ + channel / channels) * w.tap;
  }
  int64_t tap_count() const { return static_cast<int64_t>(taps_.size()); }
  int64_t phase_count() const { return static_cast<int64_t>(phases_.size() / 3); }
  // Of a pair of columns; of the last one a half, where columns are odd.
  int64_t packed_pair() const { return 2 * own_blocks_ * tap_count() * terms_ * kTileElements; }
  // Of channels that a pair of columns reads, from this on.
  int64_t first_block(int64_t column) const {
    const int64_t group = column * kTileColumns / (s_.out / s_.groups);
    return s_.groups == 1 ? 0 : group * (s_.in / s_.groups) / kTileDepth;
  }
  // The weights of two columns, or of one, for these blocks of channels.
  const uint16_t* weights_at(const Call& call, int64_t column, int64_t block) const {
    return call.packed + column / 2 * packed_pair() + block * tap_count() * terms_ * columns_at(column) * kTileElements;
  }
  int64_t columns_at(int64_t column) const { return column + 1 < columns_ ? 2 : 1; }
  // Of a phase, for each block of channels, of what is copied at once.
  int64_t phase_lines() const { return most_rows_ * kTileRows + reach_; }
  int64_t own_bytes() const;  // of a thread's scratch
  // Tiles whose sums wait, for each row of them.
  int64_t waiting_columns() const { return most_blocks_ < blocks_ ? columns_ : nearest_ < blocks_ ? 2 : 0; }

  void gather_weights(const TileWeights& w, int64_t column, int64_t block, int64_t tap,
                      float (&values)[kTileDepth][2 * kTileColumns]) const;
  template <int terms>
  void pack_pair(const TileWeights& w, int64_t column, uint16_t* to) const;

  Lines lines_of(const Call& call, const Range& rows, const Range& blocks, uint16_t* copied) const;
  bool has_infinite_halves(const uint16_t* copied, const Range& rows, const Range& blocks) const;
  uint32_t copy(const void* src, const Range& rows, const Range& blocks, uint16_t* lines, bool all) const;
  uint32_t copy_row(const void* src, int64_t phase, int64_t row, const Range& positions, const Range& blocks,
                    uint16_t* lines, bool all) const;
  // Of positions so many elements apart, whose channels are in one place each or, as `half` says, in two.
  struct Step {
    int64_t position, channel, half;
  };
  uint32_t copy_terms(const void* from, const Step& step, uint16_t* to, int64_t positions, int64_t block,
                      bool all) const;
  template <class T>
  uint32_t copy_folded(const T* row, const Range& positions, const Range& blocks, uint16_t* lines, bool all) const;

  void compute(const Call& call, const Part& part, char* scratch) const;
  void compute(const Call& call, const Part& part, const Range& rows, char* scratch) const;
  struct Ahead {
    const uint16_t* weights;       // of the first of the blocks of channels
    int64_t columns, part, parts;  // of them: tiles; which of how many parts
  };
  void multiply(const Call& call, const Lines& lines, int64_t row, int64_t column, const int64_t (&tiles)[2],
                const Range& blocks, const Ahead& ahead, float* sums) const;
  // The same number by number, of a group's own channels.
  void multiply_plainly(const Call& call, const Lines& lines, int64_t row, int64_t column, const int64_t (&tiles)[2],
                        float* sums) const;
  void finish(const Call& call, int64_t row, int64_t column, const int64_t (&tiles)[2], float* sums) const;
  bool finish_at_once(const Call& call, int64_t row, int64_t column, int64_t columns, float* sums) const;
  void store(const Call& call, int64_t row, int64_t column, float* sums) const;
  void add(const Post& post, int64_t row, int64_t column, float* sums) const;
  void put(const Call& call, int64_t row, int64_t column, const float* sums) const;

  struct Tap {
    int64_t phase, offset;  // positions
  };

  const TileShape given_;
  const int64_t folded_;  // taps along the last axis that are channels here
  TileShape s_;
  TileOrder src_, dst_;
  int terms_;
  std::vector<Post> posts_;
  int threads_;
  TileUnit unit_;
  int64_t apart_;                  // bytes, of lines of weights that are asked for
  bool is_apart_;                  // lower terms are summed before first ones
  bool is_read_in_place_ = false;  // rows of bfloat16
  int64_t extents_[3];             // of a phase
  std::vector<int64_t> phases_;    // three numbers each: those that taps read
  std::vector<Tap> taps_;
  std::vector<int64_t> offsets_;     // of each row of tiles, in the result; -1: none
  int64_t size_, reach_ = 0;         // positions of a phase; beyond its own that a tile reads
  int64_t rows_, columns_, blocks_;  // tiles; blocks of channels
  int64_t own_blocks_;               // that a pair of columns reads
  int64_t tile_rows_;                // 16, or fewer where there are fewer in all
  int64_t most_rows_, most_blocks_;  // that are copied at once
  int64_t nearest_;                  // blocks of channels whose weights stay in the core's first cache
  std::vector<int64_t> tap_lines_;   // of what is copied
};

}  // namespace gopt_runtime
