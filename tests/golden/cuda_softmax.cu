#include "gopt_launch.h"
#include "gopt_math.cuh"
#include "kernels.h"

static __global__ void __launch_bounds__(32) gopt_kernel_0_body(const float* in0, float* __restrict__ out) {
  gopt_let_next_begin();
  const int64_t of_thread = threadIdx.x % 32 * 4;
  const float* const all_in0 = in0;
  float* const all_out = out;
  gopt_wait();
  for (uint32_t row = blockIdx.x; row < 24; row += gridDim.x) {
    const int64_t i0 = row;
    gopt_chunk<float, 4> row_in0[1];
#pragma unroll
    for (int k = 0; k < 1; k++) {
      const int64_t first = of_thread + k * 128;
      row_in0[k] = gopt_chunk<float, 4>(all_in0, 128 * i0 + first);
    }
    float t3 = (-__builtin_inff());
#pragma unroll
    for (int k = 0; k < 1; k++) {
      const int64_t first = of_thread + k * 128;
#pragma unroll
      for (int e = 0; e < 4; e++) {
        [[maybe_unused]] const int64_t r4 = first + e;
        [[maybe_unused]] const auto in0 = row_in0[k].element(e);
        const float v5 = in0[128 * i0 + r4];
        t3 = gopt_max<float>(t3, v5);
      }
    }
    t3 = gopt_warp_reduce(t3, [](auto a, auto b) { return gopt_max<float>(a, b); });
    float t8 = 0.0f;
#pragma unroll
    for (int k = 0; k < 1; k++) {
      const int64_t first = of_thread + k * 128;
#pragma unroll
      for (int e = 0; e < 4; e++) {
        [[maybe_unused]] const int64_t r9 = first + e;
        [[maybe_unused]] const auto in0 = row_in0[k].element(e);
        const float v10 = in0[128 * i0 + r9];
        const float v11 = (v10 - t3);
        const float v12 = gopt_exp(v11);
        t8 = t8 + v12;
      }
    }
    t8 = gopt_warp_reduce(t8, [](auto a, auto b) { return a + b; });
    const float v13 = (1.0f / t8);
#pragma unroll
    for (int k = 0; k < 1; k++) {
      const int64_t first = of_thread + k * 128;
      gopt_chunk<float, 4> own_out(128 * i0 + first);
#pragma unroll
      for (int e = 0; e < 4; e++) {
        [[maybe_unused]] const int64_t i1 = first + e;
        [[maybe_unused]] const auto in0 = row_in0[k].element(e);
        const auto out = own_out.element(e);
        const float v2 = in0[128 * i0 + i1];
        const float v6 = (v2 - t3);
        const float v7 = gopt_exp(v6);
        const float v14 = (v7 * v13);
        out[128 * i0 + i1] = v14;
      }
      own_out.store(all_out);
    }
  }
}

void gopt_kernel_0(const float* in0, float* __restrict__ out, cudaStream_t stream) {
  gopt_runtime::launch_kernel(gopt_kernel_0_body, 24, 32, stream, in0, out);
}

static __global__ void __launch_bounds__(256) gopt_kernel_1_body(const float* in0, float* __restrict__ out) {
  gopt_let_next_begin();
  gopt_wait();
  for (uint32_t row = blockIdx.x * (uint32_t)blockDim.x + threadIdx.x; row < 3072; row += gridDim.x * (uint32_t)blockDim.x) {
    const int64_t i0 = row % 12;
    const int64_t i1 = (row / 12) % 128;
    const int64_t i2 = ((row / 12) / 128);
    const float v3 = in0[128 * i0 + 1536 * i2 + i1];
    const float v4 = gopt_exp(v3);
    out[12 * i1 + 1536 * i2 + i0] = v4;
  }
}

void gopt_kernel_1(const float* in0, float* __restrict__ out, cudaStream_t stream) {
  gopt_runtime::launch_kernel(gopt_kernel_1_body, 12, 256, stream, in0, out);
}

