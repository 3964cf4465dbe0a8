// Convolutions of images in blocks of channels, in loops of our own. The image is copied with its border, where it has
// one, so that a tap is an offset; weights are packed in panels of two vectors of output channels, in the order in
// which they are read: block of input channels by block, tap by tap. The sums of some positions by one panel stay in
// registers over a part of the depth, whose weights stay in the nearest cache while many positions pass by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gopt_planar.h"
#include "gopt_post.h"

namespace gopt_runtime {

class BlockConvolution {
 public:
  // Of one group, not transposed; source and result in blocks of so many channels, those that are none zeros.
  BlockConvolution(const PlanarShape& shape, int64_t block, std::vector<Post> posts, int threads);

  // Whether blocks of so many channels are whole vectors.
  static bool takes_blocks_of(int64_t channels);
  // What the order of packed weights depends on.
  static int64_t panel_channels();
  size_t packed_floats() const;
  // Weights [out, in, taps...].
  void pack(const float* weights, float* packed) const;

  // The operand of an Add lies as the result does, or, by Post::dims, is a number for each channel.
  void bind_post(int post, const void* operand) { posts_[static_cast<size_t>(post)].operand = operand; }
  size_t scratch_floats() const;
  // `bias`, one for each channel, may be null. `packed` and `scratch` are 64-byte aligned.
  void run(const float* src, const float* packed, const float* bias, float* dst, float* scratch) const;

 private:
  // Some positions of the result of one image, one after another.
  struct Rows {
    int64_t image, first, count;
  };
  struct Part {
    int64_t first, last;  // of rows_
    int64_t first_panel, last_panel;
  };
  struct Call {
    const float *src, *packed, *bias;
    float *dst, *kept;  // kept: sums of one thread's parts of the depth
  };
  // Steps [first, last) of the depth, by one panel.
  struct Steps {
    int64_t panel, first, last;
    const float* next;    // weights that are to be fetched meanwhile, or null
    int64_t turn, turns;  // of the positions that these weights are multiplied by
  };

  void describe_steps();
  Part part_of(int thread, int threads) const;
  void copy(const float* src, float* to, int64_t line) const;
  void compute(const Call& call, const Part& part) const;
  void compute(const Call& call, const Rows& rows, const Steps& steps, float* kept) const;
  void finish(const Call& call, const Rows& rows, int64_t panel, float* sums) const;
  void add(const Post& post, const float* dst, const Rows& rows, int64_t panel, float* sums) const;
  int vectors_of(int64_t panel) const;
  int64_t channels_at(int64_t channel) const;  // that there are of a vector
  int64_t place(const Rows& rows, int64_t channel) const;
  int64_t weights_at(int64_t panel, int64_t step) const;
  int64_t kept_floats() const;

  PlanarShape s_;
  int64_t block_;
  std::vector<Post> posts_;
  int threads_;
  int64_t filled_, panels_;           // filled_: channels that are written
  bool has_border_ = false;           // or ends that no window reaches
  int64_t extents_[3];                // of the image that is read
  int64_t src_image_, dst_image_;     // elements
  std::vector<int64_t> places_;       // of the first tap of each position of the result
  std::vector<int64_t> steps_;        // of the depth: where a vector of channels of a tap lies, from there on
  std::vector<int64_t> first_input_;  // and its number, parallel to steps_
  std::vector<int64_t> taps_;         // and its tap
  std::vector<Rows> rows_;
  SimplePosts simple_;
};

}  // namespace gopt_runtime
