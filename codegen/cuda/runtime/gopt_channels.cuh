// Kernels of gopt_channels.h. A thread makes sixteen bytes of channels at one position of the result, or at several of
// a line, whose windows share what they see; all taps of a line are on their way before the first is used, and weights
// are fetched before the kernel before has ended. Means over whole images are made by a block for some channels.
#pragma once

#include "gopt_activation.cuh"
#include "gopt_channels.h"
#include "gopt_cluster.cuh"
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

constexpr int kChannelThreads = 128;

template <class Of>
__device__ __forceinline__ Of* memory_of_block() {
  extern __shared__ __align__(128) char shared[];
  return reinterpret_cast<Of*>(shared);
}

// The larger of each, where not-a-numbers win.
template <class T>
__device__ __forceinline__ void take_larger(Lanes<T>& largest, const Lanes<T>& other) {
#pragma unroll
  for (int k = 0; k < Lanes<T>::kCount; k++)
    largest.elements[k] = T(gopt_max((float)largest.elements[k], (float)other.elements[k]));
}
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
#define GOPT_TAKE_LARGER(T, TYPE)                                                                                 \
  template <>                                                                                                     \
  __device__ __forceinline__ void take_larger<T>(Lanes<T> & largest, const Lanes<T>& other) {                     \
    unsigned* to = reinterpret_cast<unsigned*>(largest.elements);                                                 \
    const unsigned* from = reinterpret_cast<const unsigned*>(other.elements);                                     \
    _Pragma("unroll") for (int i = 0; i < 4; i++) asm("max.NaN." TYPE " %0,%0,%1;" : "+r"(to[i]) : "r"(from[i])); \
  }
GOPT_TAKE_LARGER(gopt_half, "f16x2")
GOPT_TAKE_LARGER(gopt_bfloat16, "bf16x2")
#undef GOPT_TAKE_LARGER
#endif

template <class T>
__device__ __forceinline__ void store_numbers(T* to, const float* numbers, bool is_aligned) {
  Lanes<T> lanes;
#pragma unroll
  for (int k = 0; k < Lanes<T>::kCount; k++) lanes.elements[k] = T(numbers[k]);
  lanes.store(to, is_aligned);
}
// Sums of a depthwise convolution, for channels from `channel` on of a position of the result.
template <class T>
__device__ __forceinline__ void store_sums(const TileProblem& p, float* sums, const Lanes<T>& bias, int row,
                                           int channel) {
  constexpr int kCount = Lanes<T>::kCount;
  Lanes<T> addend;
  if (p.addend) addend.load(static_cast<const T*>(p.addend) + row * p.addend_line + channel, p.is_aligned);
#pragma unroll
  for (int k = 0; k < kCount; k++) {
    if (p.bias) sums[k] += bias[k];
    if (p.addend) sums[k] += addend[k];
  }
  apply_activation<T, kCount / 4>(reinterpret_cast<float(*)[4]>(sums), p.activation);
  store_numbers(static_cast<T*>(p.dst) + row * p.dst_line + channel, sums, p.is_aligned);
}

// kSide: of a square window, where the compiler is told; else 0. kAlong: positions of a line that a thread makes; of
// several it is a pool, the window is known, its steps along the line are kStep, and nothing is dilated.
template <Window kWindow, class T, int kSide, int kAlong = 1, int kStep = 1>
class Channels {
 public:
  static constexpr int kCount = Lanes<T>::kCount;
  static_assert(kAlong == 1 || (kSide > 0 && kWindow != Window::Depthwise));

  __device__ __forceinline__ Channels(const TileProblem& p, unsigned number) : p_(p) {
    const unsigned chunks = p.channels / kCount, place = number / chunks, of_line = (p.out_width + kAlong - 1) / kAlong;
    channel_ = static_cast<int>(number - place * chunks) * kCount;
    const int line = static_cast<int>(place / of_line), x = static_cast<int>(place - line * of_line) * kAlong,
              plane = line / p.out_height, image = kHasPlanes ? plane / p.out_planes : plane;
    row_ = line * p.out_width + x;
    is_there_ = row_ < p.rows;
    count_ = min(kAlong, p.out_width - x);
    top_ = (line - plane * p.out_height) * p.strides[0] - p.pads[0];
    if constexpr (kHasPlanes) front_ = (plane - image * p.out_planes) * p.stride_of_planes - p.pad_of_planes;
    left_ = x * p.strides[1] - p.pads[1];
    src_ = static_cast<const T*>(p.src) + static_cast<int64_t>(image) * p.planes * p.height * p.width * p.src_line +
           channel_;
  }

  __device__ __forceinline__ void run() {
    if (!p_.has_constant_weights) gopt_wait();
    load_weights();
    if (p_.has_constant_weights) gopt_wait();
    if (!is_there_) return;
#pragma unroll
    for (int a = 0; a < kAlong; a++)
#pragma unroll
      for (int k = 0; k < kCount; k++) {
        if constexpr (kIsLargest)
          largest_[a].elements[k] = T(-INFINITY);
        else
          sums_[a][k] = 0.0f;
      }
    if constexpr (kAlong > 1) {
      const bool is_inside_all = top_ >= 0 && left_ >= 0 && top_ + kSide <= p_.height && left_ + kSeen <= p_.width;
      if (is_inside_all)
        walk_lines<true>();
      else
        walk_lines<false>();
    } else if constexpr (kSide > 0) {
      walk_known_window();
    } else {
      walk_window();
    }
#pragma unroll
    for (int a = 0; a < kAlong; a++)
      if (a < count_) finish(a);
  }

 private:
  static constexpr bool kHasWeights = kWindow == Window::Depthwise, kIsLargest = kWindow == Window::Largest;
  static constexpr bool kHasPlanes = kSide == 0;  // of volumes, whose windows are never known
  static constexpr int kTaps = kSide * kSide;
  static constexpr int kSeen = (kAlong - 1) * kStep + kSide;  // positions of a line in some window

  __device__ __forceinline__ const T* weights() const {
    return static_cast<const T*>(p_.weights) + channel_ * p_.line_of_weights;
  }
  // A chunk's channels have as many chunks of weights as there are taps.
  __device__ __forceinline__ void load_weights() {
    if (kHasWeights && is_there_ && p_.bias) bias_.load(static_cast<const T*>(p_.bias) + channel_, p_.is_aligned);
    if constexpr (kHasWeights && kSide > 0) {
      if (!is_there_) return;
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
  // Of the weights that are held.
  __device__ __forceinline__ float weight(int tap, int k) const {
    return weights_[(k * kTaps + tap) / kCount][(k * kTaps + tap) % kCount];
  }

  template <bool kIsInside>
  __device__ __forceinline__ void walk_lines() {
#pragma unroll
    for (int ky = 0; ky < kSide; ky++) {
      const int y = top_ + ky;
      if (!kIsInside && static_cast<unsigned>(y) >= static_cast<unsigned>(p_.height)) continue;
      Lanes<T> seen[kSeen];
#pragma unroll
      for (int i = 0; i < kSeen; i++)
        if (kIsInside || is_inside(y, left_ + i)) seen[i] = read(y, left_ + i);
#pragma unroll
      for (int i = 0; i < kSeen; i++) {
        if (!kIsInside && !is_inside(y, left_ + i)) continue;
#pragma unroll
        for (int a = 0; a < kAlong; a++)
          if (const int kx = i - a * kStep; kx >= 0 && kx < kSide) add(a, seen[i]);
      }
    }
  }

  // What lies outside is left out, not multiplied by zero: weights may be infinite.
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
      if (is_tap[t]) add_tap(taps[t], [&](int k) { return weight(t, k); });
  }

  __device__ __forceinline__ void walk_window() {
    for (int kz = 0; kz < p_.kernel_planes; kz++) {
      const int z = front_ + kz * p_.dilation_of_planes;
      if (static_cast<unsigned>(z) >= static_cast<unsigned>(p_.planes)) continue;
      for (int ky = 0; ky < p_.kernel_height; ky++)
        for (int kx = 0; kx < p_.kernel_width; kx++) {
          const int y = top_ + ky * p_.dilations[0], x = left_ + kx * p_.dilations[1];
          if (!is_inside(y, x)) continue;
          const T* tap = kHasWeights ? weights() + (kz * p_.kernel_height + ky) * p_.kernel_width + kx : nullptr;
          add_tap(read(z * p_.height + y, x), [&](int k) { return (float)tap[k * p_.line_of_weights]; });
        }
    }
  }

  __device__ __forceinline__ void add(int a, const Lanes<T>& lanes) {
    if constexpr (kIsLargest) {
      take_larger(largest_[a], lanes);
      return;
    }
    inside_[a]++;
#pragma unroll
    for (int k = 0; k < kCount; k++) sums_[a][k] += lanes[k];
  }
  template <class Weight>
  __device__ __forceinline__ void add_tap(const Lanes<T>& lanes, const Weight& weight) {
    if constexpr (kHasWeights) {
#pragma unroll
      for (int k = 0; k < kCount; k++) sums_[0][k] += lanes[k] * weight(k);
    } else {
      add(0, lanes);
    }
  }

  __device__ __forceinline__ void finish(int a) {
    T* dst = static_cast<T*>(p_.dst) + (row_ + a) * p_.dst_line + channel_;
    if constexpr (kIsLargest) {
      largest_[a].store(dst, p_.is_aligned);
      return;
    }
    float* sums = sums_[a];
    if constexpr (kWindow == Window::Mean) {
      const int count = p_.counts_outside ? p_.kernel_planes * p_.kernel_height * p_.kernel_width : inside_[a];
#pragma unroll
      for (int k = 0; k < kCount; k++) sums[k] /= static_cast<float>(count);
    }
    if constexpr (kHasWeights)
      store_sums(p_, sums, bias_, row_ + a, channel_);
    else
      store_numbers(dst, sums, p_.is_aligned);
  }

  const TileProblem& p_;
  int row_, channel_, front_ = 0, top_, left_, count_, inside_[kAlong] = {};
  bool is_there_;
  const T* src_;
  float sums_[kAlong][kCount];
  Lanes<T> largest_[kIsLargest ? kAlong : 1];
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

template <Window kWindow, class T, int kSide, int kAlong, int kStep>
__global__ void __launch_bounds__(kChannelThreads) channel_kernel(const __grid_constant__ TileProblem problem) {
  gopt_let_next_begin();
  gopt_touch(problem);
  Channels<kWindow, T, kSide, kAlong, kStep>(problem, blockIdx.x * kChannelThreads + threadIdx.x).run();
}

template <Window kWindow, class Operand, int kSide, int kAlong = 1, int kStep = 1>
TileKernel make_channels() {
  using T = typename Operand::Stored;
  return {reinterpret_cast<const void*>(channel_kernel<kWindow, T, kSide, kAlong, kStep>), kAlong, Lanes<T>::kCount,
          kChannelThreads, 0};
}

// Means over whole images: a block takes some chunks of the channels of one, and divides its positions, or a share of
// them where blocks of a cluster share an image; parts are added in their order.
constexpr int kChunksOfBlock = 8, kPartsOfImage = kChannelThreads / kChunksOfBlock;
template <class T>
using SumsOfParts = float[kChunksOfBlock][Lanes<T>::kCount + 1];

template <class T>
__global__ void __launch_bounds__(kChannelThreads) whole_mean_kernel(const __grid_constant__ TileProblem p) {
  constexpr int kCount = Lanes<T>::kCount;
  gopt_let_next_begin();
  gopt_touch(p);
  const int chunks = p.channels / kCount, of_image = (chunks + kChunksOfBlock - 1) / kChunksOfBlock,
            thread = static_cast<int>(threadIdx.x), part = thread / kChunksOfBlock,
            image = static_cast<int>(blockIdx.x) / of_image,
            chunk = (static_cast<int>(blockIdx.x) - image * of_image) * kChunksOfBlock + thread % kChunksOfBlock,
            positions = p.height * p.width;
#if __CUDA_ARCH__ >= 900
  const int share = static_cast<int>(blockIdx.y), shares = static_cast<int>(gridDim.y);
#else
  constexpr int share = 0, shares = 1;  // code for older devices, which a newer one may run: each block sums all alone
#endif
  const bool is_there = chunk < chunks;
  const T* src = static_cast<const T*>(p.src) + static_cast<int64_t>(image) * positions * p.src_line + chunk * kCount;
  float sums[kCount] = {};
  gopt_wait();
  if (is_there) {
#pragma unroll 4
    for (int i = share * kPartsOfImage + part; i < positions; i += kPartsOfImage * shares) {
      Lanes<T> lanes;
      lanes.load(src + static_cast<int64_t>(i) * p.src_line, p.is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; k++) sums[k] += lanes[k];
    }
  }
  SumsOfParts<T>* parts = memory_of_block<SumsOfParts<T>>();
#pragma unroll
  for (int k = 0; k < kCount; k++) parts[part][thread % kChunksOfBlock][k] = sums[k];
  __syncthreads();
  const bool is_first = part == 0 && is_there;
#pragma unroll
  for (int k = 0; k < kCount && is_first; k++) {
    sums[k] = 0.0f;
#pragma unroll
    for (int i = 0; i < kPartsOfImage; i++) sums[k] += parts[i][thread][k];
  }
#if __CUDA_ARCH__ >= 900
  if (shares > 1) {
#pragma unroll
    for (int k = 0; k < kCount && is_first; k++) parts[0][thread][k] = sums[k];
    wait_for_cluster();
    for (int other = 1; other < shares && share == 0 && is_first; other++) {
      const float* there = in_block(parts[0][thread], other);
#pragma unroll
      for (int k = 0; k < kCount; k++) sums[k] += there[k];
    }
    wait_for_cluster();  // what is read stays there until it was
  }
#endif
  if (share > 0 || !is_first) return;
  Lanes<T> result;
#pragma unroll
  for (int k = 0; k < kCount; k++) result.elements[k] = T(sums[k] / static_cast<float>(positions));
  result.store(static_cast<T*>(p.dst) + image * p.dst_line + chunk * kCount, p.is_aligned);
}

// Its blocks make the channels of as many chunks.
template <class Operand>
TileKernel make_whole_means() {
  using T = typename Operand::Stored;
  return {reinterpret_cast<const void*>(whole_mean_kernel<T>), 0, Lanes<T>::kCount * kChunksOfBlock, kChannelThreads,
          kPartsOfImage * static_cast<int>(sizeof(SumsOfParts<T>))};
}

}  // namespace tiles
}  // namespace gopt_runtime
