// Convolutions of 3x3 taps in steps of one by Winograd's minimal filtering, of images in blocks of channels: 4x4
// positions of the result take 36 products a pair of channels in place of 144 (2x2 ones, of small images, 16 for 36).
// Tiles of 6x6 elements of the image, which overlap by two, and the weights are transformed; for each element of tiles
// the channels are multiplied as matrices, by panels of weights (gopt_panel_sums.h), and what comes out is transformed
// back. Lavin and Gray, 2016. Of volumes a window's planes are so many times as many channels: each position's products
// are summed over all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gopt_planar.h"
#include "gopt_post.h"

namespace gopt_runtime {

class WinogradConvolution {
 public:
  // Of one group, not transposed; source and result in blocks of so many channels, those that are none zeros, and both
  // of that type: of bfloat16 ones transforms and products are of floats, too.
  WinogradConvolution(const PlanarShape& shape, int64_t block, std::vector<Post> posts, int threads,
                      Element element = Element::Float);

  static bool takes(const PlanarShape& shape, int64_t block);
  // What the order of packed weights depends on.
  static int64_t panel_channels();
  int64_t block() const { return block_; }
  size_t packed_floats() const;
  // Weights [out, in, planes, 3, 3].
  void pack(const float* weights, float* packed) const;

  // The operand of an Add lies as the result does, or, by Post::dims, is a number for each channel.
  void bind_post(int post, const void* operand) { posts_[static_cast<size_t>(post)].operand = operand; }
  size_t scratch_floats() const;
  // `bias`, one for each channel, may be null. `packed` and `scratch` are 64-byte aligned.
  void run(const void* src, const float* packed, const float* bias, void* dst, float* scratch) const;

 private:
  struct Floats {
    const float *packed, *bias;
    float *inputs, *products;  // inputs: transformed ones of a group of tiles; products: of it by one panel
  };
  template <class T>
  struct Call : Floats {
    const T* src;
    T* dst;
  };
  struct Range {
    int64_t first, last;
  };
  // Where a tile's result begins.
  struct Tile {
    int64_t image, plane, h, w;
  };
  // A vector of channels of a tile's result.
  struct Part {
    Tile tile;
    int64_t channel, rows, columns;  // positions that are within the image
  };

  Tile tile_at(int64_t number) const;
  int vectors_of(int64_t panel) const;
  int64_t weights_at(int64_t panel, int64_t element) const;
  int64_t inputs_element(int64_t tiles) const;
  static int64_t products_element(int64_t tiles);
  int64_t place(const Part& part, int64_t row) const;
  void pack_channel(const float* weights, int64_t panel, int64_t channel, float* packed) const;
  template <class T>
  void transform_tile(const T* src, const Tile& tile, float* to, int64_t element) const;
  template <class T>
  void transform_plane(const T* src, const Tile& tile, int64_t plane, float* to, int64_t element) const;
  void multiply(const Floats& call, int64_t tiles, int64_t panel, const float* next) const;
  template <class T>
  void transform_back(const Call<T>& call, const Range& group, const float* products, int64_t width,
                      int64_t channel) const;
  template <class T>
  const T* addend(const Call<T>& call) const;
  template <class T>
  void store(const Call<T>& call, const Part& part, const float* sums, const T* added) const;
  template <class T>
  void finish(const Call<T>& call, const Part& part, float* sums) const;
  template <class T>
  void add(const Post& post, const T* dst, const Part& part, float* sums) const;
  template <class T>
  void compute(const Call<T>& call, const Range& group, const Range& panels) const;
  template <class T>
  void run_alone(const Call<T>& call, int thread, int threads) const;
  template <class T, class CallOf>
  void run_together(const CallOf& call_of) const;
  template <class T>
  void run_as(const T* src, const float* packed, const float* bias, T* dst, float* scratch) const;

  PlanarShape s_;
  int64_t block_;
  std::vector<Post> posts_;
  int threads_;
  Element element_;
  // Channels that are read of a plane, and of all planes of a window; those that are written.
  int64_t channels_, depth_, filled_;
  int64_t panels_;
  int64_t tile_, window_, elements_;  // extents of a tile's result, of what it reads; elements of that
  int64_t tiles_high_, tiles_wide_, tiles_;
  int64_t group_;     // most tiles that are transformed before they are multiplied
  bool is_together_;  // all threads work on one group: each has panels of its own, not tiles
  SimplePosts simple_;
};

}  // namespace gopt_runtime
