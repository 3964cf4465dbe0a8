#include "gopt_math.h"
#include "kernels.h"

#include "gopt_math.h"
#include "kernels.h"

void gopt_kernel_0(const float* __restrict in0, float* __restrict out) {
#pragma omp parallel
  {
    {
#pragma omp for schedule(static) nowait
      for (int64_t i0 = 0; i0 < 12; i0++) {
        for (int64_t i1 = 0; i1 < 128; i1++) {
#pragma omp simd
          for (int64_t i2 = 0; i2 < 64; i2++) {
            const float v3 = in0[64 * i0 + 768 * i1 + i2];
            const float v4 = gopt_exp(v3);
            out[64 * i1 + 8192 * i0 + i2] = v4;
          }
        }
      }
    }
  }
}

