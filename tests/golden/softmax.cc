#include "gopt_math.h"
#include "kernels.h"

#include "gopt_math.h"
#include "kernels.h"

void gopt_kernel_0(const float* __restrict in0, float* __restrict out) {
#pragma omp parallel
  {
    {
#pragma omp for schedule(static) nowait
      for (int64_t i0 = 0; i0 < 768; i0++) {
        float t2 = (-__builtin_inff());
#pragma omp simd reduction(max:t2)
        for (int64_t r3 = 0; r3 < 128; r3++) {
          const float v4 = in0[128 * i0 + r3];
          t2 = v4 > t2 ? v4 : t2;
        }
        float t5 = 0.0f;
        alignas(64) float a10[128];
#pragma omp simd reduction(+:t5)
        for (int64_t r6 = 0; r6 < 128; r6++) {
          const float v7 = in0[128 * i0 + r6];
          const float v8 = (v7 - t2);
          const float v9 = gopt_exp(v8);
          t5 = t5 + v9;
          a10[r6] = v9;
        }
        const float v11 = (1.0f / t5);
#pragma omp simd
        for (int64_t i1 = 0; i1 < 128; i1++) {
          const float v12 = (a10[i1] * v11);
          out[128 * i0 + i1] = v12;
        }
      }
    }
  }
}

