// What follows a library's call, by a kernel of ours: bias, addend and activation; and the taps of a transposed
// convolution, added up.
#pragma once

#include "gopt_activation.cuh"
#include "gopt_half.cuh"
#include "gopt_library.h"

namespace gopt_runtime {

template <class T>
constexpr int kOfChunk = 16 / static_cast<int>(sizeof(T));
template <class T>
struct alignas(16) Chunk {
  T elements[kOfChunk<T>];
};

// dst, sixteen bytes at a time. The bias's element is that of `inner` chunks one after another; 0: of each element.
template <class T>
__global__ void chunk_epilogue_kernel(Chunk<T>* dst, uint32_t chunks, const T* bias, uint32_t channels, uint32_t inner,
                                      const Chunk<T>* addend, Activation activation) {
  constexpr int kCount = kOfChunk<T>;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < chunks; i += gridDim.x * blockDim.x) {
    Chunk<T> chunk = dst[i], added, biases;
    if (addend) added = addend[i];
    if (bias && inner == 0) biases = reinterpret_cast<const Chunk<T>*>(bias)[i % (channels / kCount)];
    const float shared = bias && inner > 0 ? (float)bias[i / inner % channels] : 0.0f;
#pragma unroll
    for (int k = 0; k < kCount; k++) {
      float x = (float)chunk.elements[k] + shared;
      if (bias && inner == 0) x += (float)biases.elements[k];
      if (addend) x += (float)added.elements[k];
      chunk.elements[k] = T(activate(x, activation));
    }
    dst[i] = chunk;
  }
}
// Of what is in no whole chunks.
template <class T>
__global__ void epilogue_kernel(T* dst, int64_t count, const T* bias, int64_t channels, int64_t inner, const T* addend,
                                Activation activation) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x) {
    float x = (float)dst[i];
    if (bias) x += (float)bias[i / inner % channels];
    if (addend) x += (float)addend[i];
    dst[i] = T(activate(x, activation));
  }
}

// Of a transposed convolution: `to_*` are steps in what is added up, in elements.
struct Taps {
  uint32_t height, width, rows, columns, channels, kernel_height, kernel_width;
  uint32_t to_image, to_channel, to_tap, to_position;
  int32_t strides[2], dilations[2], pads[2];
  bool is_channels_last;
};

// Which position of the source meets an output's at a tap, along an axis; none: `extent` or more.
__device__ __forceinline__ uint32_t source_of(int32_t at, int tap, const Taps& w, int axis) {
  const int32_t from = at + w.pads[axis] - tap * w.dilations[axis];
  return from < 0 || from % w.strides[axis] != 0 ? ~0u : (uint32_t)(from / w.strides[axis]);
}

template <class T>
__global__ void fold_kernel(T* dst, const float* taps, Taps w, uint32_t count, const T* bias, const T* addend,
                            Activation activation) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    uint32_t rest = i;
    const auto next = [&rest](uint32_t extent) {
      const uint32_t own = rest % extent;
      rest /= extent;
      return own;
    };
    uint32_t channel = w.is_channels_last ? next(w.channels) : 0;
    const uint32_t x = next(w.columns), y = next(w.rows);
    if (!w.is_channels_last) channel = next(w.channels);
    const float* own = taps + rest * w.to_image + channel * w.to_channel;
    float sum = 0;
    for (int ky = 0; ky < (int)w.kernel_height; ky++) {
      const uint32_t row = source_of((int32_t)y, ky, w, 0);
      if (row >= w.height) continue;
      for (int kx = 0; kx < (int)w.kernel_width; kx++) {
        const uint32_t column = source_of((int32_t)x, kx, w, 1);
        if (column < w.width)
          sum += own[(ky * w.kernel_width + kx) * w.to_tap + (row * w.width + column) * w.to_position];
      }
    }
    if (bias) sum += (float)bias[channel];
    if (addend) sum += (float)addend[i];
    dst[i] = T(activate(sum, activation));
  }
}

inline Taps taps_of(const Convolution& c) {
  const auto narrow = [](int64_t i) { return static_cast<uint32_t>(i); };
  const uint32_t of_kernel = narrow(positions_of(c.weights)), positions = narrow(positions_of(c.src)),
                 channels = narrow(c.dst[1]);
  Taps w{};
  w.height = narrow(c.src[2]), w.width = narrow(c.src[3]);
  w.rows = narrow(c.dst[2]), w.columns = narrow(c.dst[3]), w.channels = channels;
  w.kernel_height = narrow(c.weights[2]), w.kernel_width = narrow(c.weights[3]);
  w.to_image = positions * channels * of_kernel;
  w.to_channel = c.channels_last ? 1 : of_kernel * positions;
  w.to_tap = c.channels_last ? channels : positions;
  w.to_position = c.channels_last ? of_kernel * channels : 1;
  for (int a = 0; a < 2; a++) {
    w.strides[a] = static_cast<int32_t>(c.strides[a]);
    w.dilations[a] = static_cast<int32_t>(c.dilations[a]);
    w.pads[a] = static_cast<int32_t>(c.pads[a]);
  }
  w.is_channels_last = c.channels_last;
  return w;
}

}  // namespace gopt_runtime
