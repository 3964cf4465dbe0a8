// Launches of generated kernels, one function for each distinct kernel.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

struct gopt_half;
struct gopt_bfloat16;
void gopt_kernel_0(const float* in0, gopt_half* __restrict__ out, cudaStream_t stream);
void gopt_kernel_1(const gopt_half* in0, const float* __restrict__ in1, float* __restrict__ out, cudaStream_t stream);
#include "gopt_half.cuh"
#include "gopt_launch.h"
#include "gopt_math.cuh"
#include "kernels.h"

static __global__ void __launch_bounds__(128) gopt_kernel_0_body(const float* in0, gopt_half* __restrict__ out) {
  gopt_let_next_begin();
  gopt_wait();
  const float* const all_in0 = in0;
  gopt_half* const all_out = out;
  for (uint32_t row = blockIdx.x * (uint32_t)blockDim.x + threadIdx.x; row < 768; row += gridDim.x * (uint32_t)blockDim.x) {
    const int64_t i0 = row % 768 * 4;
    const gopt_chunk<float, 4> in0(all_in0, i0);
    gopt_chunk<gopt_half, 4> out(i0);
#pragma unroll
    for (int i2 = 0; i2 < 4; i2++) {
      const int64_t i1 = i0 + i2;
      const float v3 = in0[i1];
      out[i1] = gopt_half(gopt_within_half(v3));
    }
    out.store(all_out);
  }
}

void gopt_kernel_0(const float* in0, gopt_half* __restrict__ out, cudaStream_t stream) {
  gopt_runtime::launch_kernel(gopt_kernel_0_body, 6, 128, stream, in0, out);
}

static __global__ void __launch_bounds__(32) gopt_kernel_1_body(const gopt_half* in0, const float* __restrict__ in1, float* __restrict__ out) {
  gopt_let_next_begin();
  const int64_t of_thread = threadIdx.x % 32 * 2;
  const float* const all_in1 = in1;
  const gopt_half* const all_in0 = in0;
  float* const all_out = out;
  gopt_chunk<float, 2> row_in1[1];
#pragma unroll
  for (int k = 0; k < 1; k++) {
    const int64_t first = of_thread + k * 64;
    row_in1[k] = gopt_chunk<float, 2>(all_in1, first);
  }
  gopt_wait();
  for (uint32_t row = blockIdx.x; row < 24; row += gridDim.x) {
    const int64_t i0 = row;
    gopt_chunk<gopt_half, 2> row_in0[1];
#pragma unroll
    for (int k = 0; k < 1; k++) {
      const int64_t first = of_thread + k * 64;
      row_in0[k] = gopt_chunk<gopt_half, 2>(all_in0, 64 * i0 + first);
    }
    float t5 = (-__builtin_inff());
#pragma unroll
    for (int k = 0; k < 1; k++) {
      const int64_t first = of_thread + k * 64;
#pragma unroll
      for (int e = 0; e < 2; e++) {
        [[maybe_unused]] const int64_t r6 = first + e;
        [[maybe_unused]] const auto in0 = row_in0[k].element(e);
        [[maybe_unused]] const auto in1 = row_in1[k].element(e);
        const float v7 = (float)in0[64 * i0 + r6];
        const float v8 = in1[r6];
        const float v9 = (v7 * v8);
        t5 = gopt_max<float>(t5, v9);
      }
    }
    t5 = gopt_warp_reduce(t5, [](auto a, auto b) { return gopt_max<float>(a, b); });
    float t12 = 0.0f;
#pragma unroll
    for (int k = 0; k < 1; k++) {
      const int64_t first = of_thread + k * 64;
#pragma unroll
      for (int e = 0; e < 2; e++) {
        [[maybe_unused]] const int64_t r13 = first + e;
        [[maybe_unused]] const auto in0 = row_in0[k].element(e);
        [[maybe_unused]] const auto in1 = row_in1[k].element(e);
        const float v14 = (float)in0[64 * i0 + r13];
        const float v15 = in1[r13];
        const float v16 = (v14 * v15);
        const float v17 = gopt_difference<float>(gopt_rounded<float>(v16), t5);
        const float v18 = gopt_exp(v17);
        t12 = t12 + v18;
      }
    }
    t12 = gopt_warp_reduce(t12, [](auto a, auto b) { return a + b; });
    const float v19 = (1.0f / t12);
#pragma unroll
    for (int k = 0; k < 1; k++) {
      const int64_t first = of_thread + k * 64;
      gopt_chunk<float, 2> own_out(64 * i0 + first);
#pragma unroll
      for (int e = 0; e < 2; e++) {
        [[maybe_unused]] const int64_t i1 = first + e;
        [[maybe_unused]] const auto in0 = row_in0[k].element(e);
        [[maybe_unused]] const auto in1 = row_in1[k].element(e);
        const auto out = own_out.element(e);
        const float v2 = (float)in0[64 * i0 + i1];
        const float v3 = in1[i1];
        const float v4 = (v2 * v3);
        const float v10 = gopt_difference<float>(gopt_rounded<float>(v4), t5);
        const float v11 = gopt_exp(v10);
        const float v20 = (v11 * v19);
        const float v21 = gopt_exp(v20);
        out[64 * i0 + i1] = v21;
      }
      own_out.store(all_out);
    }
  }
}

void gopt_kernel_1(const gopt_half* in0, const float* __restrict__ in1, float* __restrict__ out, cudaStream_t stream) {
  gopt_runtime::launch_kernel(gopt_kernel_1_body, 24, 32, stream, in0, in1, out);
}

