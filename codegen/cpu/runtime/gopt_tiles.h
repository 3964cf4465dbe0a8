// Convolutions, and products by constant weights, on tiles (gopt_tile_kernel.h). The source is first copied with its
// border, split into terms: 32 channels of a position are a line, positions follow one another, the phases of a stride
// apart. 16 lines in a row are a tile, and a tap is an offset, so that nothing is unfolded; results at the border are
// computed and left out. A product is a convolution of one tap whose positions are its rows; where there is one tap,
// all channels of 16 positions lie together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gopt_post.h"
#include "gopt_tile_kernel.h"

namespace gopt_runtime {

// Extents of three axes; those that are not there come first and are 1.
struct TileShape {
  int64_t batch = 1, in = 1, out = 1;
  int64_t src[3] = {1, 1, 1}, dst[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t strides[3] = {1, 1, 1}, dilations[3] = {1, 1, 1}, pads[3] = {0, 0, 0};
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

class TileConvolution {
 public:
  // Sources and weights of bfloat16 are of one term.
  TileConvolution(const TileShape& shape, const TileOrder& src, const TileOrder& dst, int terms,
                  std::vector<Post> posts, int threads, TileUnit unit);

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
  struct Blocking {
    int64_t rows, channels;  // tiles, blocks of channels
  };

  void describe_axes();
  void add_positions();
  Part part_of(int thread, int threads) const;
  Blocking blocking(const Part& part) const;
  // Elements of a position's line.
  int64_t line(bool has_again) const { return (has_again && terms_ > 1 ? terms_ + 1 : terms_) * kTileDepth; }
  // Of a position's 32 channels, among blocks of these.
  int64_t place(int64_t position, int64_t block, int64_t line) const { return (block * lines_ + position) * line; }
  // Of a pair of columns; of the last one a half, where columns are odd.
  int64_t packed_pair() const { return 2 * blocks_ * static_cast<int64_t>(taps_.size()) * terms_ * kTileElements; }

  uint32_t copy(const void* src, uint16_t* lines, int64_t task, bool all) const;
  uint32_t copy_terms(const void* from, uint16_t* to, int64_t positions, int64_t block, bool all) const;

  struct Call {
    const uint16_t *lines, *packed;
    const float* bias;
    void* dst;
    bool has_again;
  };
  void compute(const Call& call, const Part& part, float* kept) const;
  void multiply(const Call& call, int64_t row, int64_t column, const int64_t (&tiles)[2], const int64_t (&blocks)[2],
                float* sums) const;
  void store(const Call& call, int64_t row, int64_t column, float* sums) const;
  void add(const Post& post, int64_t row, int64_t column, float* sums) const;
  void put(const Call& call, int64_t row, int64_t column, const float* sums) const;

  TileShape s_;
  TileOrder src_, dst_;
  int terms_;
  std::vector<Post> posts_;
  int threads_;
  TileUnit unit_;
  bool is_apart_;                            // lower terms are summed before first ones
  int64_t extents_[3];                       // of a phase
  std::vector<int64_t> phases_;              // three numbers each: those that taps read
  std::vector<int64_t> taps_;                // lines
  std::vector<int64_t> offsets_;             // of each row of tiles, in the result; -1: none
  int64_t lines_, rows_, columns_, blocks_;  // of a block of channels; tiles; blocks of channels
  int64_t tile_rows_;                        // 16, or fewer where there are fewer in all
  int64_t segments_;                         // of a row of positions, which are copied at once
};

}  // namespace gopt_runtime
