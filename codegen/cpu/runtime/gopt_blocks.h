// Convolutions of images in blocks of channels, in loops of our own. The image is copied with its border, where it has
// one, so that a tap is an offset; weights are packed in panels of two vectors of output channels, in the order in
// which they are read: block of input channels by block, tap by tap. The sums of some positions by one panel stay in
// registers over a part of the depth, whose weights stay in the nearest cache while many positions pass by.
// A transposed convolution is one of stride 1 for each residue of the result's positions by its strides, by the taps
// that reach these: all read the same copy of the image.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gopt_planar.h"
#include "gopt_post.h"

namespace gopt_runtime {

class BlockConvolution {
 public:
  // Of one group; source and result in blocks of so many channels, those that are none zeros.
  BlockConvolution(const PlanarShape& shape, int64_t block, std::vector<Post> posts, int threads);

  // Whether blocks of so many channels are whole vectors.
  static bool takes_blocks_of(int64_t channels);
  // Says in which order weights are packed: two that say the same pack them alike.
  uint64_t order_of_weights() const;
  size_t packed_floats() const;
  // Weights [out, in, taps...] or, transposed, [in, out, taps...].
  void pack(const float* weights, float* packed) const;

  // The operand of an Add lies as the result does, or, by Post::dims, is a number for each channel.
  void bind_post(int post, const void* operand) { posts_[static_cast<size_t>(post)].operand = operand; }
  size_t scratch_floats() const;
  // `bias`, one for each channel, may be null. `packed` and `scratch` are 64-byte aligned.
  void run(const float* src, const float* packed, const float* bias, float* dst, float* scratch) const;

 private:
  // Some of places_, for one image.
  struct Rows {
    int64_t image, first, count;
    bool are_even;  // positions of the result are dst_step_ apart
  };
  // Positions that are computed by the same steps; of a convolution that is not transposed, all.
  struct Residue {
    int64_t first_row, last_row;    // of rows_
    int64_t first_step, last_step;  // of steps_
    int64_t packed;                 // where its weights begin
    int64_t steps() const { return last_step - first_step; }
  };
  // Of an axis.
  struct Tap {
    int64_t number, shift;  // in elements of the image, from where a position's window begins
  };
  struct Part {
    int64_t share, shares;  // of each residue's rows
    int64_t first_panel, last_panel;
  };
  struct Call {
    const float *src, *packed, *bias;
    float *dst, *kept;  // kept: sums of one thread's parts of the depth
  };
  // Steps [first, last) of a residue's depth, by one panel.
  struct Steps {
    const Residue* residue;
    int64_t panel, first, last;
    const float* next;    // weights that are to be fetched meanwhile, or null
    int64_t turn, turns;  // of the positions that these weights are multiplied by
  };

  void describe_image();
  void add_residue(const int64_t (&residue)[3]);
  void add_rows(const int64_t (&residue)[3]);
  std::vector<Tap> taps_of(int axis, int64_t residue) const;
  int64_t residues_of(int axis) const { return s_.transposed ? std::min(s_.strides[axis], s_.dst[axis]) : 1; }
  int64_t positions_of(int axis, int64_t residue) const;
  int64_t place_in_image(int64_t d, int64_t h, int64_t w) const;
  Part part_of(int thread, int threads) const;
  void copy(const float* src, float* to, int64_t line) const;
  void compute(const Call& call, const Residue& residue, const Part& part) const;
  void compute(const Call& call, const Rows& rows, const Steps& steps, float* kept) const;
  void finish(const Call& call, const Rows& rows, int64_t panel, float* sums) const;
  void add(const Post& post, const float* dst, const Rows& rows, int64_t panel, float* sums) const;
  int vectors_of(int64_t panel) const;
  int64_t channels_at(int64_t channel) const;  // that there are of a vector
  int64_t place(const Rows& rows, int64_t row, int64_t channel) const;
  int64_t weights_at(const Residue& residue, int64_t panel, int64_t step) const;
  int64_t kept_floats() const;

  PlanarShape s_;
  int64_t block_;
  std::vector<Post> posts_;
  int threads_;
  int64_t filled_, panels_;        // filled_: channels that are written
  bool has_border_ = false;        // or ends that no window reaches
  int64_t before_[3];              // zeros before the image
  int64_t extents_[3];             // of the image that is read
  int64_t dst_step_;               // positions of the result from one of a row to the next
  int64_t src_image_, dst_image_;  // elements
  std::vector<Residue> residues_;
  std::vector<int64_t> places_;       // where each position's window begins
  std::vector<int64_t> positions_;    // of the result, parallel to places_
  std::vector<int64_t> steps_;        // of the depth: where a vector of channels of a tap lies, from there on
  std::vector<int64_t> first_input_;  // and its number, parallel to steps_
  std::vector<int64_t> taps_;         // and its tap
  std::vector<Rows> rows_;
  SimplePosts simple_;
};

}  // namespace gopt_runtime
