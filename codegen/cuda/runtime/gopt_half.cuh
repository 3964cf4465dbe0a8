// Numbers of 16 bits in memory: kernels compute with floats, and round what they store to the nearest, halves to even.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct gopt_half {
  __half value;

  gopt_half() = default;
  __host__ __device__ explicit gopt_half(float x) : value(__float2half_rn(x)) {}
  __host__ __device__ explicit gopt_half(double x) : value(__double2half(x)) {}
  __host__ __device__ explicit operator float() const { return __half2float(value); }
};

struct gopt_bfloat16 {
  __nv_bfloat16 value;

  gopt_bfloat16() = default;
  __host__ __device__ explicit gopt_bfloat16(float x) : value(__float2bfloat16_rn(x)) {}
  __host__ __device__ explicit gopt_bfloat16(double x) : value(__double2bfloat16(x)) {}
  __host__ __device__ explicit operator float() const { return __bfloat162float(value); }
};

// Of what was a float in the model: a finite one stays finite, so that what masks by -1e9 does not make infinities.
__host__ __device__ inline float gopt_within_half(float x) {
  constexpr float kLargest = 65504.0f;
  const float size = x < 0.0f ? -x : x;
  if (!(size > kLargest) || size > 3.402823466e38f) return x;
  return x < 0.0f ? -kLargest : kLargest;
}
