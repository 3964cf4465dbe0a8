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
        float t3 = (-__builtin_inff());
#pragma omp simd reduction(max:t3)
        for (int64_t r4 = 0; r4 < 128; r4++) {
          const float v5 = in0[128 * i0 + r4];
          t3 = v5 > t3 ? v5 : t3;
        }
        float t8 = 0.0f;
#pragma omp simd reduction(+:t8)
        for (int64_t r9 = 0; r9 < 128; r9++) {
          const float v10 = in0[128 * i0 + r9];
          const float v11 = (v10 - t3);
          const float v12 = gopt_exp(v11);
          t8 = t8 + v12;
        }
#pragma omp simd
        for (int64_t i1 = 0; i1 < 128; i1++) {
          const float v2 = in0[128 * i0 + i1];
          const float v6 = (v2 - t3);
          const float v7 = gopt_exp(v6);
          const float v13 = (v7 / t8);
          out[128 * i0 + i1] = v13;
        }
      }
    }
  }
}

