// Depthwise convolutions of channels last. A block makes a rectangle of the result for some channels:
// its weights come into shared memory before the kernel before has ended, what its windows see comes after, all of it
// at once. A thread makes two channels of some neighbouring positions of a line, so that what a line of the window sees
// is read once for all of them. Of volumes a block makes a rectangle of one plane of the result, and goes through the
// planes that its windows see.
#pragma once

#include "gopt_channel_rectangle.h"
#include "gopt_channels.cuh"

namespace gopt_runtime {
namespace tiles {

template <class T>
struct Pair {
  alignas(2 * sizeof(T)) T elements[2];
  __device__ __forceinline__ float operator[](int k) const { return (float)elements[k]; }
};

// A window of kPlanes by kHeight by kWidth in steps of kStep along lines and columns, which are undilated, over
// rectangles of kLines by kColumns positions (ChannelRectangle). Weights are constants.
template <class T, int kPlanes_, int kHeight_, int kWidth_, int kStep_, int kLines_, int kColumns_, int kAlong_,
          int kBytes_>
struct ChannelTileShape {
  using Stored = T;
  static constexpr int kPlanes = kPlanes_, kHeight = kHeight_, kWidth = kWidth_, kStep = kStep_, kLines = kLines_,
                       kColumns = kColumns_, kAlong = kAlong_, kBytes = kBytes_, kSize = sizeof(T),
                       kTaps = kPlanes * kHeight * kWidth, kChannels = kBytes / kSize, kPairs = kChannels / 2,
                       kThreads = kPairs * kLines * (kColumns / kAlong);
  // What is seen: lines, and positions of a line.
  static constexpr int kSeenLines = (kLines - 1) * kStep + kHeight, kSeenColumns = (kColumns - 1) * kStep + kWidth;
  static constexpr ChannelTileMemory kMemory =
      memory_of({kLines, kColumns, kAlong, kBytes}, kPlanes, kHeight, kWidth, kStep);
  static constexpr int kPitch = kMemory.line, kSeenBytes = kMemory.seen, kSharedBytes = kMemory.all,
                       kWeightsAt = kSharedBytes - kMemory.weights;
  static_assert(kAlong % 2 == 0 && kColumns % kAlong == 0, "sums are activated by fours");
  static_assert(kPitch % kChunk == 0, "chunks are copied");
};

template <class S>
class ChannelTile {
  using T = typename S::Stored;

 public:
  __device__ __forceinline__ explicit ChannelTile(const TileProblem& p) : p_(p) {
    extern __shared__ __align__(128) char shared[];
    memory_ = shared;
    at_ = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    const int of_channels = (p.channels + S::kChannels - 1) / S::kChannels,
              across = (p.out_width + S::kColumns - 1) / S::kColumns, down = (p.out_height + S::kLines - 1) / S::kLines;
    int number = static_cast<int>(blockIdx.x) / of_channels;
    channel_ = (static_cast<int>(blockIdx.x) - number * of_channels) * S::kChannels;
    plane_ = number / (across * down);
    number -= plane_ * across * down;
    y_ = number / across * S::kLines;
    x_ = (number - number / across * across) * S::kColumns;
  }

  __device__ __forceinline__ void run() {
    if (!p_.has_constant_weights) gopt_wait();
    copy_weights();
    const int thread = static_cast<int>(threadIdx.x), pair = thread % S::kPairs, line = thread / S::kPairs % S::kLines,
              column = thread / S::kPairs / S::kLines * S::kAlong, channel = channel_ + pair * 2;
    const bool is_there = channel < p_.channels && y_ + line < p_.out_height && x_ + column < p_.out_width;
    Pair<T> bias;
    if (p_.bias && is_there) bias = load(static_cast<const T*>(p_.bias) + channel);
    gopt_wait();
    float sums[S::kAlong][2] = {};
    if constexpr (S::kPlanes == 1) {
      copy_seen(plane_, 0);
      end_stage();
      wait_for_stages<0>();
      __syncthreads();
      if (is_there) add(sums, 0, 0, pair, line, column);
    } else {
      walk_planes(sums, is_there, pair, line, column);
    }
    if (is_there) finish(sums, bias, channel, line, column);
  }

 private:
  __device__ __forceinline__ Pair<T> load(const T* from) const {
    if (p_.is_aligned) return *reinterpret_cast<const Pair<T>*>(from);
    return {{from[0], from[1]}};
  }

  // Those of the block's channels follow each other.
  __device__ __forceinline__ void copy_weights() const {
    const int chunks = min(S::kChannels, p_.channels - channel_) * S::kTaps * S::kSize / kChunk;
    const auto* from = reinterpret_cast<const char*>(static_cast<const T*>(p_.weights) + channel_ * S::kTaps);
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < chunks; i += S::kThreads)
      copy_chunk(at_ + S::kWeightsAt + i * kChunk, from + i * kChunk, true);
  }

  // Planes of the window that lie inside the volume, each copied while the one before it is used.
  __device__ __forceinline__ void walk_planes(float (*sums)[2], bool is_there, int pair, int line, int column) const {
    const int image = plane_ / p_.out_planes,
              front = (plane_ - image * p_.out_planes) * p_.stride_of_planes - p_.pad_of_planes,
              step = p_.dilation_of_planes, first = front < 0 ? (-front + step - 1) / step : 0,
              end = min(S::kPlanes, (p_.planes - front + step - 1) / step);
    const auto copy = [&](int kz) {
      if (kz < end) copy_seen(image * p_.planes + front + kz * step, (kz - first) % 2);
      end_stage();
    };
    copy(first);
#pragma unroll 1
    for (int kz = first; kz < end; kz++) {
      copy(kz + 1);
      wait_for_stages<1>();
      __syncthreads();
      if (is_there) add(sums, kz, (kz - first) % 2, pair, line, column);
      __syncthreads();
    }
    wait_for_stages<0>();
  }

  // Zeros where there is no image. Nothing waits for a copy, so that a loop that is not unrolled asks for all of them
  // as soon, and its instructions, which are in no near cache, are there sooner.
  __device__ __forceinline__ void copy_seen(int plane, int stage) const {
    constexpr int kChunks = S::kBytes / kChunk, kOfChunk = kChunk / S::kSize;
    const int top = y_ * S::kStep - p_.pads[0], left = x_ * S::kStep - p_.pads[1];
    const T* image = static_cast<const T*>(p_.src) + static_cast<int64_t>(plane) * p_.height * p_.width * p_.src_line;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < S::kSeenLines * S::kSeenColumns * kChunks; i += S::kThreads) {
      const int chunk = i % kChunks, place = i / kChunks, line = place / S::kSeenColumns,
                column = place - line * S::kSeenColumns, y = top + line, x = left + column,
                channel = channel_ + chunk * kOfChunk;
      const bool is_there = static_cast<unsigned>(y) < static_cast<unsigned>(p_.height) &&
                            static_cast<unsigned>(x) < static_cast<unsigned>(p_.width) && channel < p_.channels;
      const T* from = is_there ? image + static_cast<int64_t>(y * p_.width + x) * p_.src_line + channel : image;
      const int to = stage * S::kSeenBytes + line * S::kPitch + column * S::kBytes + chunk * kChunk;
      if (p_.is_aligned) {
        copy_chunk(at_ + to, from, is_there);
      } else {
        for (int k = 0; k < kOfChunk; k++) reinterpret_cast<T*>(memory_ + to)[k] = is_there ? from[k] : T(0.0f);
      }
    }
  }

  __device__ __forceinline__ const Pair<T>* seen_at(int stage, int pair, int line, int column) const {
    const char* line_at = memory_ + stage * S::kSeenBytes + line * S::kPitch;
    return reinterpret_cast<const Pair<T>*>(line_at + column * S::kBytes) + pair;
  }
  __device__ __forceinline__ const T* weights_of(int kz, int pair) const {
    return reinterpret_cast<const T*>(memory_ + S::kWeightsAt) + pair * 2 * S::kTaps + kz * S::kHeight * S::kWidth;
  }

  // What the window's plane kz sees, which lies in `stage`.
  __device__ __forceinline__ void add(float (*sums)[2], int kz, int stage, int pair, int line, int column) const {
    if (p_.has_finite_weights)
      add_all(sums, kz, stage, pair, line, column);
    else
      add_inside(sums, kz, stage, pair, line, column);
  }

  __device__ __forceinline__ void add_all(float (*sums)[2], int kz, int stage, int pair, int line, int column) const {
    constexpr int kSeen = (S::kAlong - 1) * S::kStep + S::kWidth, kOfPosition = S::kBytes / (2 * S::kSize);
    const Pair<T>* seen = seen_at(stage, pair, line * S::kStep, column * S::kStep);
    const T* weights = weights_of(kz, pair);
#pragma unroll 1
    for (int ky = 0; ky < S::kHeight; ky++) {
      float weight[S::kWidth][2];
#pragma unroll
      for (int kx = 0; kx < S::kWidth; kx++)
#pragma unroll
        for (int k = 0; k < 2; k++) weight[kx][k] = (float)weights[k * S::kTaps + kx];
#pragma unroll
      for (int i = 0; i < kSeen; i++) {
        const Pair<T> value = seen[i * kOfPosition];
#pragma unroll
        for (int a = 0; a < S::kAlong; a++)
          if (const int kx = i - a * S::kStep; kx >= 0 && kx < S::kWidth) {
#pragma unroll
            for (int k = 0; k < 2; k++) sums[a][k] += value[k] * weight[kx][k];
          }
      }
      seen += S::kPitch / (2 * S::kSize);
      weights += S::kWidth;
    }
  }

  // What lies outside is left out, not multiplied by zero: some weights are infinite.
  __device__ __forceinline__ void add_inside(float (*sums)[2], int kz, int stage, int pair, int line,
                                             int column) const {
    const T* weights = weights_of(kz, pair);
#pragma unroll 1
    for (int tap = 0; tap < S::kHeight * S::kWidth; tap++) {
      const int ky = tap / S::kWidth, kx = tap - ky * S::kWidth, y = (y_ + line) * S::kStep - p_.pads[0] + ky;
      if (static_cast<unsigned>(y) >= static_cast<unsigned>(p_.height)) continue;
#pragma unroll
      for (int a = 0; a < S::kAlong; a++) {
        const int x = (x_ + column + a) * S::kStep - p_.pads[1] + kx;
        if (static_cast<unsigned>(x) >= static_cast<unsigned>(p_.width)) continue;
        const Pair<T> value = *seen_at(stage, pair, line * S::kStep + ky, (column + a) * S::kStep + kx);
#pragma unroll
        for (int k = 0; k < 2; k++) sums[a][k] += value[k] * (float)weights[k * S::kTaps + tap];
      }
    }
  }

  __device__ __forceinline__ void finish(float (*sums)[2], const Pair<T>& bias, int channel, int line,
                                         int column) const {
    const int row = (plane_ * p_.out_height + y_ + line) * p_.out_width + x_ + column,
              count = min(S::kAlong, p_.out_width - x_ - column);
#pragma unroll
    for (int a = 0; a < S::kAlong; a++) {
      Pair<T> addend;
      const bool is_added = p_.addend && a < count;
      if (is_added) addend = load(static_cast<const T*>(p_.addend) + (row + a) * p_.addend_line + channel);
#pragma unroll
      for (int k = 0; k < 2; k++) {
        if (p_.bias) sums[a][k] += bias[k];
        if (is_added) sums[a][k] += addend[k];
      }
    }
    apply_activation<T, S::kAlong / 2>(reinterpret_cast<float(*)[4]>(sums), p_.activation);
#pragma unroll
    for (int a = 0; a < S::kAlong; a++) {
      if (a >= count) continue;
      T* to = static_cast<T*>(p_.dst) + (row + a) * p_.dst_line + channel;
      const Pair<T> result{{T(sums[a][0]), T(sums[a][1])}};
      if (p_.is_aligned)
        *reinterpret_cast<Pair<T>*>(to) = result;
      else
        to[0] = result.elements[0], to[1] = result.elements[1];
    }
  }

  const TileProblem& p_;
  char* memory_;
  unsigned at_;
  int channel_, plane_, y_, x_;  // of the result: planes of all images are counted
};

template <class S>
__global__ void __launch_bounds__(S::kThreads) channel_tile_kernel(const __grid_constant__ TileProblem problem) {
  gopt_let_next_begin();
  gopt_touch(problem);
  ChannelTile<S>(problem).run();
}

template <class Operand, int kPlanes, int kHeight, int kWidth, int kStep, int kLines, int kColumns, int kAlong,
          int kBytes>
TileKernel make_channel_tiles() {
  using S =
      ChannelTileShape<typename Operand::Stored, kPlanes, kHeight, kWidth, kStep, kLines, kColumns, kAlong, kBytes>;
  TileKernel kernel;
  kernel.function = reinterpret_cast<const void*>(channel_tile_kernel<S>);
  kernel.lines = S::kLines, kernel.rows = S::kColumns, kernel.columns = S::kChannels;
  kernel.threads = S::kThreads, kernel.shared_bytes = S::kSharedBytes;
  return kernel;
}

}  // namespace tiles
}  // namespace gopt_runtime
