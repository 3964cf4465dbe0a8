// Convolutions of plain tensors as matrix products: the elements under the windows of some positions of the output are
// copied beside each other, in an amount that stays in the cache, and multiplied by the weights as they lie. Any number
// of channels, kernel, stride and dilation; worth it where there are several channels to compute or windows are large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gopt_planar.h"

namespace gopt_runtime {

class UnfoldedConvolution {
 public:
  // Precondition: not transposed.
  UnfoldedConvolution(const PlanarShape& shape, std::vector<Post> posts, int threads);

  size_t scratch_floats() const { return static_cast<size_t>(threads_) * floats_a_thread(); }
  void bind_post(int post, const void* operand) { posts_[static_cast<size_t>(post)].operand = operand; }
  // `weights` as ONNX has them, [out, in / groups, axes...]. `bias` may be null. `scratch` is aligned to 64 bytes.
  void run(const float* src, const float* weights, const float* bias, float* dst, void* scratch) const;

 private:
  size_t floats_a_thread() const { return windows_ + results_; }
  // Of positions [first, first + count): a row for each element of the window, or one for each position.
  void unfold_rows(const float* src, int64_t first, int64_t count, float* rows) const;
  void unfold_windows(const float* src, int64_t first, int64_t count, float* windows) const;
  void sum_windows(const float* src, const float* weights, int64_t first, int64_t count, float* result) const;
  void multiply(const float* weights, const float* windows, int64_t stride, int64_t count, float* result,
                int64_t result_stride) const;
  void compute(int64_t image, int64_t group, int64_t first, int64_t count, const float* src, const float* weights,
               const float* bias, float* dst, float* scratch) const;

  PlanarShape s_;
  std::vector<Post> posts_;
  int threads_;
  int64_t depth_ = 1, positions_ = 1;               // elements of a window, positions of the output
  std::vector<std::pair<int64_t, int64_t>> there_;  // by column of the kernel: positions of a row at which it reads
  int64_t block_ = 1;                               // positions at once
  bool in_place_ = false;                           // the source is its own windows
  bool by_window_ = false;                          // a position's window lies together
  bool sums_windows_ = false;                       // where it lies
  size_t windows_ = 0, results_ = 0;                // floats
};

}  // namespace gopt_runtime
