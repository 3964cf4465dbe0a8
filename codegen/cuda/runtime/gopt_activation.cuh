// What library kernels and tiles apply to their results before they store them.
#pragma once

#include "gopt_library.h"
#include "gopt_math.cuh"

namespace gopt_runtime {

// f of each of several numbers, which go along side by side: a function of twenty dependent steps takes four little
// more time than one.
template <int kCount, class F>
__device__ __forceinline__ void for_each_number(float* x, F f) {
#pragma unroll
  for (int i = 0; i < kCount; i++) x[i] = f(x[i]);
}

template <int kCount>
__device__ __forceinline__ void activate(float* x, const Activation& a) {
  const auto each = [x](auto f) { for_each_number<kCount>(x, f); };
  switch (a.kind) {
    case ActivationKind::None: return;
    case ActivationKind::Relu: return each([](float v) { return gopt_max(v, 0.0f); });
    case ActivationKind::LeakyRelu: return each([&a](float v) { return v < 0.0f ? a.alpha * v : v; });
    case ActivationKind::Clip: return each([&a](float v) { return gopt_min(gopt_max(v, a.alpha), a.beta); });
    case ActivationKind::Sigmoid: return each([](float v) { return 1.0f / (1.0f + expf(-v)); });
    case ActivationKind::Tanh: return each([](float v) { return tanhf(v); });
    case ActivationKind::Elu: return each([&a](float v) { return v < 0.0f ? a.alpha * expm1f(v) : v; });
    case ActivationKind::GeluErf: return each([](float v) { return 0.5f * v * (1.0f + erff(v * 0.707106781f)); });
    case ActivationKind::GeluTanh:
      return each([](float v) { return 0.5f * v * (1.0f + tanhf(0.797884561f * (v + 0.044715f * v * v * v))); });
    case ActivationKind::Swish: return each([&a](float v) { return v / (1.0f + expf(-a.alpha * v)); });
    case ActivationKind::HardSwish:
      return each([](float v) { return v * gopt_min(gopt_max(v * (1.0f / 6) + 0.5f, 0.0f), 1.0f); });
  }
}

__device__ inline float activate(float x, const Activation& a) {
  activate<1>(&x, a);
  return x;
}

// Its code once in a kernel.
static __device__ __noinline__ float4 activate_by_call(float4 four, Activation activation) {
  float values[4] = {four.x, four.y, four.z, four.w};
  activate<4>(values, activation);
  return make_float4(values[0], values[1], values[2], values[3]);
}

// To four numbers.
__device__ __forceinline__ void apply_activation(float* values, const Activation& activation) {
  if (activation.kind == ActivationKind::None) return;
  if (activation.kind == ActivationKind::Relu)
    return for_each_number<4>(values, [](float x) { return gopt_max(x, 0.0f); });
  const float4 four = activate_by_call(make_float4(values[0], values[1], values[2], values[3]), activation);
  values[0] = four.x, values[1] = four.y, values[2] = four.z, values[3] = four.w;
}

}  // namespace gopt_runtime
