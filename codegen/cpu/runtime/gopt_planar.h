// Convolutions of plain tensors in loops of our own. Lanes run over positions of the output, not over channels, so that
// any number of channels in any number of groups, any kernel, stride and dilation run alike: what oneDNN has reference
// code for comes here. The source is first copied with its border, the phases of a stride apart, unless it has none, so
// that every read is of consecutive elements. Where there are very few channels of the output, the taps of the kernel
// are the channels instead, and what they make is added up after (gopt_taps.h). Where it is asked for, lanes of a
// depthwise convolution run over channels (gopt_channel_lanes.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gopt_channel_lanes.h"
#include "gopt_post.h"
#include "gopt_taps.h"

namespace gopt_runtime {

// Extents of three axes; those that are not there come first and are 1.
struct PlanarShape {
  int64_t batch = 1, groups = 1;
  int64_t in = 1, out = 1;  // channels of a group
  int64_t src[3] = {1, 1, 1}, dst[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t strides[3] = {1, 1, 1}, dilations[3] = {1, 1, 1}, pads[3] = {0, 0, 0};  // pads before
  bool transposed = false;
  bool lanes_are_channels = false;  // of one that is depthwise and not transposed
};

inline int64_t area(const int64_t (&extents)[3]) { return extents[0] * extents[1] * extents[2]; }

class PlanarConvolution {
 public:
  PlanarConvolution(const PlanarShape& shape, std::vector<Post> posts, int threads);

  size_t packed_floats() const;
  // Weights as ONNX has them, [out, in / groups, axes...] or, transposed, [in, out / groups, axes...], to the order in
  // which they are read.
  void pack(const float* weights, float* packed) const;

  size_t scratch_floats() const;
  void bind_post(int post, const void* operand) { posts_[static_cast<size_t>(post)].operand = operand; }
  // `bias` may be null. `scratch` is aligned to 64 bytes.
  void run(const float* src, const float* packed, const float* bias, float* dst, void* scratch) const;

  // Of the lanes, the share that computes elements of the output.
  double used_lanes() const;

 private:
  // The copy of a channel along an axis: element q of a phase is source element q * stride + phase - before.
  struct Axis {
    int64_t stride = 1, before = 0, extent = 0;
    std::vector<bool> phases;  // which are read
  };
  // Consecutive lanes of one vector that are neighbours in the output.
  struct Segment {
    int32_t lane, length, dst;
  };
  // Output positions start + i * step along each axis, all of which read the source at the same offsets.
  struct Part {
    int64_t start[3], count[3];
    std::vector<int32_t> taps, weights;  // offsets within a copied channel and within the kernel
    size_t packed = 0;                   // where its weights begin
    std::vector<int32_t> vectors;        // offset of each vector's first lane within a copied channel
    std::vector<Segment> segments;
    std::vector<int32_t> first_segment;  // of each vector, and one past the last
  };
  struct Block {
    int64_t first, count;  // channels of a group
  };

  // The products of each element of the source by each tap.
  static std::unique_ptr<PlanarConvolution> products_of(const PlanarShape& shape, int threads);
  size_t floats_of_products() const;
  size_t row_floats() const;
  void run_taps(const float* src, const float* packed, const float* bias, float* dst, float* scratch) const;

  void describe_axes();
  void describe_convolution();
  void describe_transposed();
  void add_part(const int64_t (&residue)[3]);
  void add_vectors(Part& part) const;
  void add_vector(Part& part, int64_t depth, int64_t first, int64_t length) const;
  void copy_channel(const float* src, float* copy) const;
  void copy_phase(const float* src, float* copy, const int64_t (&phase)[3]) const;
  void compute(int64_t image, const Part& part, size_t first, size_t last, const Block& block, const float* x,
               const float* packed, const float* bias, float* dst) const;
  void store(const Part& part, size_t vector, size_t count, int64_t channel, float* lanes, const float* bias,
             float* dst) const;

  PlanarShape s_;
  std::vector<Post> posts_;
  int threads_;
  Axis axes_[3];
  int64_t channel_ = 0;   // floats of a copied channel
  bool in_place_ = true;  // the source is its own copy
  int64_t step_[3] = {1, 1, 1};
  std::vector<Part> parts_;
  std::vector<Block> blocks_;
  size_t packed_floats_ = 0;
  bool whole_groups_ = false;                    // each thread copies and computes groups of its own
  std::unique_ptr<ChannelLanes> channels_;       // null: lanes are positions
  std::unique_ptr<PlanarConvolution> products_;  // null: computed at once
  std::unique_ptr<TapSums> sums_;
  // Of the products' weights: in which order ONNX has them, and how many taps are channels.
  bool by_input_ = false;
  int64_t taps_of_channel_ = 1;
};

}  // namespace gopt_runtime
