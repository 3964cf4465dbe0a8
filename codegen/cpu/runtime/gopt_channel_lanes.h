// Depthwise convolutions and pooling of plain tensors whose images are too small to fill lanes with positions: lanes
// are channels. A vector's channels are turned over first, so that their elements lie side by side; positions under
// whose windows the same taps lie within the image are summed together, without a border and without taps that would
// read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gopt_post.h"

namespace gopt_runtime {

struct PlanarShape;

// What becomes of the elements under a window: they are multiplied by weights and summed, or combined as they are. A
// mean is of those that are there.
enum class Combination { Products, Greatest, Mean };

class ChannelLanes {
 public:
  // Precondition: groups of one channel, not transposed.
  ChannelLanes(const PlanarShape& shape, Combination combination, int threads);

  size_t packed_floats() const;
  void pack(const float* weights, float* packed) const;
  size_t scratch_floats() const { return static_cast<size_t>(threads_) * floats_a_thread_; }
  // `bias` may be null, and `packed` where nothing is multiplied. `scratch` is aligned to 64 bytes.
  void run(const std::vector<Post>& posts, const float* src, const float* packed, const float* bias, float* dst,
           void* scratch) const;

 private:
  struct Tap {
    int32_t offset, weight;  // of floats, from a position's base and from a block's weights
  };
  // Positions, by their bases and places in the result, and what they sum.
  struct Part {
    std::vector<Tap> taps;
    std::vector<int32_t> bases, places;
  };
  // Of an axis, outputs whose windows hold the same elements of the kernel.
  struct Span {
    int64_t first_tap, taps;
    std::vector<int64_t> outputs;
  };
  struct Buffers {
    float *copy, *sums, *rows;
  };

  static std::vector<Span> spans_of(const PlanarShape& shape, int axis);
  void add_part(const PlanarShape& shape, const Span* (&spans)[3]);
  void turn_over(const float* src, int64_t first, float* copy) const;
  template <Combination combination>
  void combine(const float* weights, const Buffers& buffers) const;

  int64_t batch_, channels_, source_, result_;  // source_, result_: positions
  int64_t taps_, blocks_;
  Combination combination_;
  int threads_;
  int64_t rows_;  // positions of the result in whole vectors
  size_t floats_a_thread_;
  std::vector<Part> parts_;
};

}  // namespace gopt_runtime
