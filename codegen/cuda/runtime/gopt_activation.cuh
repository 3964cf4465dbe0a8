// What library kernels and tiles apply to their results before they store them.
#pragma once

#include "gopt_element.h"
#include "gopt_math.cuh"

namespace gopt_runtime {

// f of each of several numbers, which go along side by side: a function of twenty dependent steps takes four little
// more time than one.
template <int kCount, class F>
__device__ __forceinline__ void for_each_number(float* x, F f) {
#pragma unroll
  for (int i = 0; i < kCount; i++) x[i] = f(x[i]);
}

// 1 / (1 + exp(-x)) and 1 - erf(x) of x >= 0 in a few instructions, to a few units in the last place of a float, and to
// 2e-7 of 1 (Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26): for results that are stored in 16 bits.
__device__ __forceinline__ float short_sigmoid(float x) {
  return gopt_short_reciprocal(1.0f + gopt_short_exp2(-1.44269504f * x));
}
__device__ __forceinline__ float short_erfc(float x) {
  const float t = gopt_short_reciprocal(1.0f + 0.3275911f * x);
  const float sum =
      t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  return sum * gopt_short_exp2(-1.44269504f * x * x);
}
__device__ __forceinline__ float short_gelu(float x) {
  const float half_of_tail = 0.5f * short_erfc(0.707106781f * fabsf(x));
  return x * (x < 0.0f ? half_of_tail : 1.0f - half_of_tail);
}

// Whether it was one of those that there is a short form of.
template <int kCount>
__device__ __forceinline__ bool activate_shortly(float* x, const Activation& a) {
  const auto each = [x](auto f) {
    for_each_number<kCount>(x, f);
    return true;
  };
  switch (a.kind) {
    case ActivationKind::Sigmoid: return each([](float v) { return short_sigmoid(v); });
    case ActivationKind::GeluErf: return each([](float v) { return short_gelu(v); });
    case ActivationKind::GeluTanh:
      return each([](float v) { return v * short_sigmoid(2 * 0.797884561f * (v + 0.044715f * v * v * v)); });
    case ActivationKind::Swish: return each([&a](float v) { return v * short_sigmoid(a.alpha * v); });
    default: return false;
  }
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

// Numbers that are in registers as they are given to a function, and come back from it.
template <int kCount>
struct Numbers {
  float values[kCount];
};
// Its code once in a kernel for each count; in short forms, if `kIsShort`. Of many numbers sixteen at a time: the twenty
// steps of one follow each other, and by fours Gelu took 3,000 cycles for the 32 numbers of a thread, as long as the
// product before it.
template <bool kIsShort, int kCount>
static __device__ __noinline__ Numbers<kCount> activate_by_call(Numbers<kCount> numbers, Activation activation) {
  if (!kIsShort || !activate_shortly<kCount>(numbers.values, activation)) activate<kCount>(numbers.values, activation);
  return numbers;
}

template <bool kIsShort, int kFours>
__device__ __forceinline__ void activate_by_calls(float (*values)[4], const Activation& a) {
  constexpr int kFoursAtOnce = kFours % 4 == 0 ? 4 : 1;
#pragma unroll
  for (int i = 0; i < kFours; i += kFoursAtOnce) {
    Numbers<4 * kFoursAtOnce> numbers;
#pragma unroll
    for (int k = 0; k < 4 * kFoursAtOnce; k++) numbers.values[k] = values[i + k / 4][k % 4];
    numbers = activate_by_call<kIsShort>(numbers, a);
#pragma unroll
    for (int k = 0; k < 4 * kFoursAtOnce; k++) values[i + k / 4][k % 4] = numbers.values[k];
  }
}

// To as many times four numbers, which are stored as `Out`.
template <class Out, int kFours>
__device__ __forceinline__ void apply_activation(float (*values)[4], const Activation& a) {
  const auto each = [values](auto f) {
#pragma unroll
    for (int i = 0; i < kFours; i++) f(values[i]);
  };
  switch (a.kind) {
    case ActivationKind::None: return;
    case ActivationKind::Relu:
      return each([](float* four) { for_each_number<4>(four, [](float x) { return gopt_max(x, 0.0f); }); });
    case ActivationKind::Clip:
      return each([low = a.alpha, high = a.beta](float* four) {
        for_each_number<4>(four, [=](float x) { return gopt_min(gopt_max(x, low), high); });
      });
    default: return activate_by_calls<sizeof(Out) == 2, kFours>(values, a);
  }
}
template <class Out>
__device__ __forceinline__ void apply_activation(float* four, const Activation& a) {
  apply_activation<Out, 1>(reinterpret_cast<float(*)[4]>(four), a);
}

}  // namespace gopt_runtime
