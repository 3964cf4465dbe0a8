#include "gopt_library.h"
#include "gopt_math.cuh"

namespace gopt_runtime {
namespace {

__device__ float activate(float x, Activation a) {
  switch (a.kind) {
    case ActivationKind::None: return x;
    case ActivationKind::Relu: return gopt_max(x, 0.0f);
    case ActivationKind::LeakyRelu: return x < 0.0f ? a.alpha * x : x;
    case ActivationKind::Clip: return gopt_min(gopt_max(x, a.alpha), a.beta);
    case ActivationKind::Sigmoid: return 1.0f / (1.0f + expf(-x));
    case ActivationKind::Tanh: return tanhf(x);
    case ActivationKind::Elu: return x < 0.0f ? a.alpha * expm1f(x) : x;
    case ActivationKind::GeluErf: return 0.5f * x * (1.0f + erff(x * 0.707106781f));
    case ActivationKind::GeluTanh: return 0.5f * x * (1.0f + tanhf(0.797884561f * (x + 0.044715f * x * x * x)));
  }
  return x;
}

// A block works within one position of the bias's axis.
__global__ void epilogue_kernel(float* dst, int64_t inner, const float* bias, int64_t channels, const float* addend, Activation activation,
                                int64_t vectors) {
  for (int64_t vector = blockIdx.y; vector < vectors; vector += gridDim.y) {
    const float b = bias ? bias[vector % channels] : 0.0f;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < inner; i += (int64_t)gridDim.x * blockDim.x) {
      const int64_t at = vector * inner + i;
      float x = dst[at] + b;
      if (addend) x += addend[at];
      dst[at] = activate(x, activation);
    }
  }
}

// The bias's axis is the innermost one, or there is no bias.
__global__ void row_epilogue_kernel(float* dst, int64_t count, const float* bias, uint32_t channels, const float* addend, Activation activation) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x) {
    float x = dst[i];
    if (bias) x += bias[i % channels];
    if (addend) x += addend[i];
    dst[i] = activate(x, activation);
  }
}

constexpr int64_t kThreads = 256, kMaxBlocks = 16384;
unsigned blocks_for(int64_t count) { return static_cast<unsigned>(count < kThreads * kMaxBlocks ? (count + kThreads - 1) / kThreads : kMaxBlocks); }

}  // namespace

void apply_epilogue(float* dst, int64_t count, const float* bias, int64_t channels, int64_t inner, const float* addend,
                    const Activation& activation, cudaStream_t stream) {
  if (bias && inner > 1) {
    const int64_t vectors = count / inner;
    const dim3 grid(blocks_for(inner), static_cast<unsigned>(vectors < 65535 ? vectors : 65535));
    epilogue_kernel<<<grid, kThreads, 0, stream>>>(dst, inner, bias, channels, addend, activation, vectors);
  } else {
    row_epilogue_kernel<<<blocks_for(count), kThreads, 0, stream>>>(dst, count, bias, static_cast<uint32_t>(channels), addend, activation);
  }
}

}  // namespace gopt_runtime
