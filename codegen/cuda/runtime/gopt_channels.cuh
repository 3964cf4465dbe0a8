// Kernels of gopt_channels.h. A thread makes sixteen bytes of channels at one position of the result; all taps of its
// window are on their way before the first is used, and weights are fetched before the kernel before has ended.
#pragma once

#include "gopt_activation.cuh"
#include "gopt_channels.h"
#include "gopt_fragments.cuh"
#include "gopt_launch.h"

namespace gopt_runtime {
namespace tiles {

using gopt_runtime::Window;  // as the generated tiles_N.cu name it

// Neighbouring channels as they lie.
template <class T>
struct Lanes {
  static constexpr int kCount = kChunk / static_cast<int>(sizeof(T));
  alignas(kChunk) T elements[kCount];

  __device__ __forceinline__ void load(const T* from, bool is_aligned) {
    if (is_aligned) {
      *reinterpret_cast<uint4*>(elements) = *reinterpret_cast<const uint4*>(from);
      return;
    }
#pragma unroll
    for (int k = 0; k < kCount; k++) elements[k] = from[k];
  }
  __device__ __forceinline__ void store(T* to, bool is_aligned) const {
    if (is_aligned) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(elements);
      return;
    }
#pragma unroll
    for (int k = 0; k < kCount; k++) to[k] = elements[k];
  }
  __device__ __forceinline__ float operator[](int k) const { return (float)elements[k]; }
};

// kSide: of a square window, where the compiler is told; else 0.
template <Window kWindow, class T, int kSide>
class Channels {
 public:
  static constexpr int kCount = Lanes<T>::kCount;

  __device__ __forceinline__ Channels(const TileProblem& p, unsigned number) : p_(p) {
    const unsigned chunks = p.channels / kCount, row = number / chunks;
    row_ = static_cast<int>(row);
    channel_ = static_cast<int>(number - row * chunks) * kCount;
    is_there_ = row_ < p.rows;
    const int area = p.out_height * p.out_width, image = row_ / area, within = row_ - image * area;
    const int y = within / p.out_width, x = within - y * p.out_width;
    top_ = y * p.strides[0] - p.pads[0];
    left_ = x * p.strides[1] - p.pads[1];
    src_ = static_cast<const T*>(p.src) + static_cast<int64_t>(image) * p.height * p.width * p.src_line + channel_;
  }

  __device__ __forceinline__ void run() {
    if (!p_.has_constant_weights) gopt_wait();
    if (is_there_) load_weights();
    if (p_.has_constant_weights) gopt_wait();
    if (!is_there_) return;
#pragma unroll
    for (int k = 0; k < kCount; k++) sums_[k] = kWindow == Window::Largest ? -INFINITY : 0.0f;
    if constexpr (kSide > 0)
      walk_known_window();
    else
      walk_window();
    finish();
  }

 private:
  static constexpr bool kHasWeights = kWindow == Window::Depthwise;
  static constexpr int kTaps = kSide * kSide;

  __device__ __forceinline__ const T* weights() const {
    return static_cast<const T*>(p_.weights) + channel_ * p_.line_of_weights;
  }
  // A chunk's channels have as many chunks of weights as there are taps.
  __device__ __forceinline__ void load_weights() {
    if constexpr (kHasWeights) {
      if (p_.bias) bias_.load(static_cast<const T*>(p_.bias) + channel_, p_.is_aligned);
      if constexpr (kSide > 0)
#pragma unroll
        for (int t = 0; t < kTaps; t++) weights_[t].load(weights() + t * kCount, p_.is_aligned);
    }
  }

  __device__ __forceinline__ bool is_inside(int y, int x) const {
    return static_cast<unsigned>(y) < static_cast<unsigned>(p_.height) &&
           static_cast<unsigned>(x) < static_cast<unsigned>(p_.width);
  }
  __device__ __forceinline__ Lanes<T> read(int y, int x) const {
    Lanes<T> lanes;
    lanes.load(src_ + static_cast<int64_t>(y * p_.width + x) * p_.src_line, p_.is_aligned);
    return lanes;
  }

  __device__ __forceinline__ void walk_known_window() {
    Lanes<T> taps[kTaps];
    bool is_tap[kTaps];
#pragma unroll
    for (int t = 0; t < kTaps; t++) {
      const int y = top_ + t / kSide * p_.dilations[0], x = left_ + t % kSide * p_.dilations[1];
      is_tap[t] = is_inside(y, x);
      if (is_tap[t]) taps[t] = read(y, x);
    }
#pragma unroll
    for (int t = 0; t < kTaps; t++)
      if (is_tap[t]) add(taps[t], [&](int k) { return weights_[(k * kTaps + t) / kCount][(k * kTaps + t) % kCount]; });
  }

  __device__ __forceinline__ void walk_window() {
    for (int ky = 0; ky < p_.kernel_height; ky++)
      for (int kx = 0; kx < p_.kernel_width; kx++) {
        const int y = top_ + ky * p_.dilations[0], x = left_ + kx * p_.dilations[1];
        if (!is_inside(y, x)) continue;
        const T* tap = kHasWeights ? weights() + ky * p_.kernel_width + kx : nullptr;
        add(read(y, x), [&](int k) { return (float)tap[k * p_.line_of_weights]; });
      }
  }

  template <class Weight>
  __device__ __forceinline__ void add(const Lanes<T>& lanes, const Weight& weight) {
    inside_++;
#pragma unroll
    for (int k = 0; k < kCount; k++) {
      if constexpr (kWindow == Window::Depthwise)
        sums_[k] += lanes[k] * weight(k);
      else if constexpr (kWindow == Window::Largest)
        sums_[k] = gopt_max(sums_[k], lanes[k]);
      else
        sums_[k] += lanes[k];
    }
  }

  __device__ __forceinline__ void finish() {
    if constexpr (kWindow == Window::Mean) {
      const int count = p_.counts_outside ? p_.kernel_height * p_.kernel_width : inside_;
#pragma unroll
      for (int k = 0; k < kCount; k++) sums_[k] /= static_cast<float>(count);
    }
    if constexpr (kHasWeights) {
      Lanes<T> addend;
      if (p_.addend) addend.load(static_cast<const T*>(p_.addend) + row_ * p_.addend_line + channel_, p_.is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; k++) {
        if (p_.bias) sums_[k] += bias_[k];
        if (p_.addend) sums_[k] += addend[k];
      }
#pragma unroll
      for (int k = 0; k < kCount; k += 4) apply_activation<T>(sums_ + k, p_.activation);
    }
    Lanes<T> result;
#pragma unroll
    for (int k = 0; k < kCount; k++) result.elements[k] = T(sums_[k]);
    result.store(static_cast<T*>(p_.dst) + row_ * p_.dst_line + channel_, p_.is_aligned);
  }

  const TileProblem& p_;
  int row_, channel_, top_, left_, inside_ = 0;
  bool is_there_;
  const T* src_;
  float sums_[kCount];
  Lanes<T> bias_, weights_[kHasWeights && kSide > 0 ? kTaps : 1];
};

// A pool beside tiles, in one launch with them.
template <Window kWindow, class T>
__device__ __forceinline__ void pool(const TileProblem& p, unsigned thread) {
  constexpr int kUsual = 3;
  if (p.kernel_height == kUsual && p.kernel_width == kUsual)
    Channels<kWindow, T, kUsual>(p, thread).run();
  else
    Channels<kWindow, T, 0>(p, thread).run();
}

constexpr int kChannelThreads = 128;

template <Window kWindow, class T, int kSide>
__global__ void __launch_bounds__(kChannelThreads) channel_kernel(const __grid_constant__ TileProblem problem) {
  gopt_let_next_begin();
  gopt_touch(problem);
  Channels<kWindow, T, kSide>(problem, blockIdx.x * kChannelThreads + threadIdx.x).run();
}

template <Window kWindow, class Operand, int kSide>
TileKernel make_channels() {
  using T = typename Operand::Stored;
  return {reinterpret_cast<const void*>(channel_kernel<kWindow, T, kSide>), 1, Lanes<T>::kCount, kChannelThreads, 0};
}

}  // namespace tiles
}  // namespace gopt_runtime
