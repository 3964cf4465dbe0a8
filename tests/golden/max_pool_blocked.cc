#include "gopt_math.h"
#include "kernels.h"

#include "gopt_math.h"
#include "kernels.h"

void gopt_kernel_0(const float* __restrict in0, float* __restrict out) {
#pragma omp parallel
  {
    {
#pragma omp for schedule(static) nowait
      for (int64_t i0 = 0; i0 < 32; i0++) {
        for (int64_t i1 = 0; i1 < 28; i1++) {
          alignas(64) float a3[28];
#pragma omp simd
          for (int64_t z = 0; z < 28; z++) a3[z] = (-__builtin_inff());
          const int64_t r4_low = gopt_max<int64_t>(-2 * i1 + 1, 0), r4_high = gopt_min<int64_t>(-2 * i1 + 56 + 1, 3);
          for (int64_t r4 = r4_low; r4 < r4_high; r4++) {
            for (int64_t r5 = 0; r5 < 3; r5++) {
              const int64_t j6_low = gopt_max<int64_t>(gopt_ceil_div(-r5 + 1, 2), 0), j6_high = gopt_min<int64_t>(gopt_floor_div(-r5 + 56, 2) + 1, 28);
#pragma omp simd
              for (int64_t j6 = j6_low; j6 < j6_high; j6++) {
                const float v7 = in0[112 * i1 + 2 * j6 + 3136 * i0 + 56 * r4 + r5 - 57];
                const float u8 = v7 > a3[j6] ? v7 : a3[j6];
                a3[j6] = u8;
              }
            }
          }
#pragma omp simd
          for (int64_t i2 = 0; i2 < 28; i2++) {
            const float v9 = gopt_exp(a3[i2]);
            out[28 * i1 + 784 * i0 + i2] = v9;
          }
        }
      }
    }
  }
}

