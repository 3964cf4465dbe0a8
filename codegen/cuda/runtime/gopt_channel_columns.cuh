// Depthwise convolutions of channels last by columns of the result.
#pragma once

#include "gopt_channels.cuh"

namespace gopt_runtime {
namespace tiles {

// A depthwise convolution of 3 by 3 whose threads go down a column of the result: each line of the source is read and
// made floats once for all of the windows that see it, and is on its way while the line before is multiplied.
template <class T, int kStep>
class ChannelColumn {
  static_assert(kStep == 1 || kStep == 2);

 public:
  __device__ __forceinline__ ChannelColumn(const TileProblem& p, unsigned number) : p_(p) {
    const unsigned chunks = p.channels / kCount, place = number / chunks;
    channel_ = static_cast<int>(number - place * chunks) * kCount;
    const int strips = (p.out_height + p.rows_of_thread - 1) / p.rows_of_thread;
    const int part = static_cast<int>(place) / p.out_width, image = part / strips;
    column_ = static_cast<int>(place) - part * p.out_width;
    const int first = (part - image * strips) * p.rows_of_thread;
    count_ = min(p.rows_of_thread, p.out_height - first);
    row_ = (image * p.out_height + first) * p.out_width + column_;
    is_there_ = row_ < p.rows;
    y_ = first * kStep - p.pads[0];
    const int left = column_ * kStep - p.pads[1];
#pragma unroll
    for (int i = 0; i < kSide; i++) is_inside_[i] = static_cast<unsigned>(left + i) < static_cast<unsigned>(p.width);
    src_ = static_cast<const T*>(p.src) + (static_cast<int64_t>(image) * p.height * p.width + left) * p.src_line +
           channel_;
  }

  __device__ __forceinline__ void run() {
    if (!p_.has_constant_weights) gopt_wait();
    if (is_there_) load_weights();
    if (p_.has_constant_weights) gopt_wait();
    if (!is_there_) return;
    float sums[kSide - 1][kCount] = {};
    read_ahead();
    if constexpr (kStep == 1)
      walk_each(sums);
    else
      walk_pairs(sums);
  }

 private:
  static constexpr int kCount = Lanes<T>::kCount, kSide = 3;

  __device__ __forceinline__ void load_weights() {
    if (p_.bias) bias_.load(static_cast<const T*>(p_.bias) + channel_, p_.is_aligned);
    Lanes<T> weights[kSide * kSide];
#pragma unroll
    for (int t = 0; t < kSide * kSide; t++)
      weights[t].load(static_cast<const T*>(p_.weights) + channel_ * p_.line_of_weights + t * kCount, p_.is_aligned);
#pragma unroll
    for (int k = 0; k < kCount; k++)
#pragma unroll
      for (int t = 0; t < kSide * kSide; t++) {
        const int at = k * kSide * kSide + t;
        weights_[t][k] = weights[at / kCount][at % kCount];
      }
  }

  __device__ __forceinline__ bool is_line(int y) const {
    return static_cast<unsigned>(y) < static_cast<unsigned>(p_.height);
  }
  // The line y_, and then the next.
  __device__ __forceinline__ void read_ahead() {
    if (is_line(y_)) {
#pragma unroll
      for (int i = 0; i < kSide; i++)
        if (is_inside_[i])
          ahead_[i].load(src_ + (static_cast<int64_t>(y_) * p_.width + i) * p_.src_line, p_.is_aligned);
    }
    y_++;
  }
  // What was read ahead, and whether it was a line; the next is on its way.
  __device__ __forceinline__ bool next_line(Lanes<T>* line) {
    const bool is_there = is_line(y_ - 1);
#pragma unroll
    for (int i = 0; i < kSide; i++) line[i] = ahead_[i];
    read_ahead();
    return is_there;
  }
  // Adds a line by the weights of a line of the window. What lies outside is left out: weights may be infinite.
  __device__ __forceinline__ void add(float* sums, const Lanes<T>* line, int of_window) const {
#pragma unroll
    for (int i = 0; i < kSide; i++)
      if (is_inside_[i]) {
#pragma unroll
        for (int k = 0; k < kCount; k++) sums[k] += line[i][k] * weights_[of_window * kSide + i][k];
      }
  }
  __device__ __forceinline__ void store(float* sums) {
    store_sums(p_, sums, bias_, row_, channel_);
    row_ += p_.out_width;
  }
  static __device__ __forceinline__ void move(float* to, float* from) {
#pragma unroll
    for (int k = 0; k < kCount; k++) to[k] = from[k], from[k] = 0;
  }

  // Each line is the last of one window, in the middle of the next and the first of the one after.
  __device__ __forceinline__ void walk_each(float (*sums)[kCount]) {
    float newest[kCount] = {};
#pragma unroll 1
    for (int i = 0; i < count_ + kSide - 1; i++) {
      Lanes<T> line[kSide];
      if (next_line(line)) {
        add(sums[0], line, 2);
        add(sums[1], line, 1);
        add(newest, line, 0);
      }
      if (i >= kSide - 1) store(sums[0]);
      move(sums[0], sums[1]);
      move(sums[1], newest);
    }
  }
  // Every other line is the last of one window and the first of the next.
  __device__ __forceinline__ void walk_pairs(float (*sums)[kCount]) {
#pragma unroll 1
    for (int i = 0; i <= count_; i++) {
      Lanes<T> line[kSide];
      if (next_line(line)) {
        add(sums[0], line, 2);
        add(sums[1], line, 0);
      }
      if (i > 0) store(sums[0]);
      if (next_line(line)) add(sums[1], line, 1);
      move(sums[0], sums[1]);
    }
  }

  const TileProblem& p_;
  int row_, channel_, column_, count_, y_;
  bool is_there_, is_inside_[kSide];
  const T* src_;
  float weights_[kSide * kSide][kCount];
  Lanes<T> bias_, ahead_[kSide];
};

template <class T, int kStep>
__global__ void __launch_bounds__(kChannelThreads) channel_column_kernel(const __grid_constant__ TileProblem problem) {
  gopt_let_next_begin();
  gopt_touch(problem);
  ChannelColumn<T, kStep>(problem, blockIdx.x * kChannelThreads + threadIdx.x).run();
}

template <class Operand, int kStep>
TileKernel make_channel_columns() {
  using T = typename Operand::Stored;
  return {reinterpret_cast<const void*>(channel_column_kernel<T, kStep>), 1, Lanes<T>::kCount, kChannelThreads, 0};
}

}  // namespace tiles
}  // namespace gopt_runtime
