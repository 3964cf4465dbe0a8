// Kernels that go with library calls: what follows them, and windows unfolded into columns.
#include "gopt_device.h"
#include "gopt_epilogue.cuh"
#include "gopt_half.cuh"
#include "gopt_launch.h"
#include "gopt_primitive.h"

namespace gopt_runtime {
namespace {

// What of an architecture's own instructions it was compiled with is known where code for the device is made.
struct Built {
  bool for_clusters, for_warpgroups;
};
__device__ Built built = {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    true,
#else
    false,
#endif
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    true,
#else
    false,
#endif
};

const Built& built_code() {
  static const Built code = [] {
    Built of_device{};
    return cudaMemcpyFromSymbol(&of_device, built, sizeof of_device) == cudaSuccess ? of_device : Built{};
  }();
  return code;
}

struct Windows {
  uint32_t height, width, rows, columns, kernel_height, kernel_width;
  int32_t strides[2], dilations[2], pads[2];
};

// Of bits: zero is zero in every type.
template <class T>
__global__ void unfold_kernel(T* dst, const T* src, Windows w, uint32_t count) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const uint32_t x = i % w.columns, above = i / w.columns, y = above % w.rows, window = above / w.rows;
    const uint32_t kx = window % w.kernel_width, outer = window / w.kernel_width, ky = outer % w.kernel_height,
                   image = outer / w.kernel_height;
    const int32_t row = (int32_t)y * w.strides[0] + (int32_t)ky * w.dilations[0] - w.pads[0];
    const int32_t column = (int32_t)x * w.strides[1] + (int32_t)kx * w.dilations[1] - w.pads[1];
    const bool inside = row >= 0 && row < (int32_t)w.height && column >= 0 && column < (int32_t)w.width;
    dst[i] = inside ? src[(image * w.height + row) * w.width + column] : T(0);
  }
}

__global__ void fold_channels_kernel(float* lines, const float* scales, const float* shifts, const float* means,
                                     const float* variances, float epsilon, int channels, int all) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < all;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    float scale = 0, shift = 0;
    if (i < channels) {
      scale = scales ? scales[i] : 1;
      if (variances) scale /= sqrtf(variances[i] + epsilon);
      shift = shifts ? shifts[i] : 0;
      if (means) shift -= means[i] * scale;
    }
    lines[2 * i] = scale, lines[2 * i + 1] = shift;
  }
}

__global__ void wait_kernel(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

constexpr int64_t kThreads = 256, kMaxBlocks = 16384;
unsigned blocks_for(int64_t count) {
  return static_cast<unsigned>(count < kThreads * kMaxBlocks ? (count + kThreads - 1) / kThreads : kMaxBlocks);
}

}  // namespace

namespace {

template <class T>
void finish_elements(const Finish& f, cudaStream_t stream) {
  constexpr int kCount = kOfChunk<T>;
  T* dst = static_cast<T*>(f.dst);
  const T *bias = static_cast<const T*>(f.bias), *addend = static_cast<const T*>(f.addend);
  const auto begins_chunk = [](const void* at) { return reinterpret_cast<uintptr_t>(at) % sizeof(Chunk<T>) == 0; };
  const bool is_along = f.inner == 1;  // elements of the bias are beside each other, as those of the result are
  const bool has_chunks =
      begins_chunk(dst) && begins_chunk(addend) && f.count % kCount == 0 && f.count / kCount <= INT32_MAX &&
      (!bias || (is_along ? f.channels % kCount == 0 && begins_chunk(bias) : f.inner % kCount == 0));
  if (has_chunks)
    chunk_epilogue_kernel<<<blocks_for(f.count / kCount), kThreads, 0, stream>>>(
        reinterpret_cast<Chunk<T>*>(dst), static_cast<uint32_t>(f.count / kCount), bias,
        static_cast<uint32_t>(f.channels), is_along ? 0 : static_cast<uint32_t>(f.inner / kCount),
        reinterpret_cast<const Chunk<T>*>(addend), f.activation);
  else
    epilogue_kernel<<<blocks_for(f.count), kThreads, 0, stream>>>(dst, f.count, bias, f.channels, f.inner, addend,
                                                                  f.activation);
}

}  // namespace

void apply_epilogue(const Finish& finish, cudaStream_t stream) {
  switch (finish.element) {
    case Element::Float32: return finish_elements<float>(finish, stream);
    case Element::Float16: return finish_elements<gopt_half>(finish, stream);
    case Element::BFloat16: return finish_elements<gopt_bfloat16>(finish, stream);
  }
}

void fold_channels(float* lines, const PrologueOperands& o, float epsilon, int channels, int all, cudaStream_t stream) {
  const auto floats = [](const void* vector) { return static_cast<const float*>(vector); };
  fold_channels_kernel<<<blocks_for(all), kThreads, 0, stream>>>(
      lines, floats(o.scale), floats(o.shift), floats(o.mean), floats(o.variance), epsilon, channels, all);
}

void keep_busy(cudaStream_t stream) {
  constexpr long long kCycles = 800'000;
  wait_kernel<<<1, 1, 0, stream>>>(kCycles);
}

void unfold(void* dst, const void* src, const Convolution& c, cudaStream_t stream) {
  auto narrow = [](int64_t i) { return static_cast<uint32_t>(i); };
  Windows w{narrow(c.src[2]),
            narrow(c.src[3]),
            narrow(c.dst[2]),
            narrow(c.dst[3]),
            narrow(c.weights[2]),
            narrow(c.weights[3]),
            {},
            {},
            {}};
  for (int a = 0; a < 2; a++) {
    w.strides[a] = static_cast<int32_t>(c.strides[a]);
    w.dilations[a] = static_cast<int32_t>(c.dilations[a]);
    w.pads[a] = static_cast<int32_t>(c.pads[a]);
  }
  const int64_t count = c.src[0] * c.src[1] * c.weights[2] * c.weights[3] * c.dst[2] * c.dst[3];
  const auto launch = [&](auto zero) {
    using T = decltype(zero);
    unfold_kernel<<<blocks_for(count), kThreads, 0, stream>>>(static_cast<T*>(dst), static_cast<const T*>(src), w,
                                                              narrow(count));
  };
  size_of(c.element) == 2 ? launch(uint16_t{}) : launch(uint32_t{});
}

void fold(const float* taps, const Operands& o, const Convolution& c, cudaStream_t stream) {
  const Taps w = taps_of(c);
  const int64_t count = c.dst[0] * c.dst[1] * positions_of(c.dst);
  const auto launch = [&](auto zero) {
    using T = decltype(zero);
    fold_kernel<<<blocks_for(count), kThreads, 0, stream>>>(static_cast<T*>(o.dst), taps, w,
                                                            static_cast<uint32_t>(count), static_cast<const T*>(o.bias),
                                                            static_cast<const T*>(o.addend), c.activation);
  };
  switch (c.element) {
    case Element::Float32: return launch(0.0f);
    case Element::Float16: return launch(gopt_half(0.0f));
    case Element::BFloat16: return launch(gopt_bfloat16(0.0f));
  }
}

bool has_code_for_device() {
  cudaFuncAttributes attributes;
  const cudaError_t status = cudaFuncGetAttributes(&attributes, wait_kernel);
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction) cudaGetLastError();
  return status != cudaErrorNoKernelImageForDevice && status != cudaErrorInvalidDeviceFunction;
}

bool has_clusters() { return built_code().for_clusters; }

bool has_warpgroups() { return built_code().for_warpgroups; }

}  // namespace gopt_runtime
