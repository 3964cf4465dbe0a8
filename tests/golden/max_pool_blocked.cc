#include "gopt_math.h"
#include "gopt_team.h"
#include "gopt_transpose.h"
#include "kernels.h"

void gopt_kernel_1(const float* __restrict in0, float* __restrict out) {
  struct Shared {
    __attribute__((noinline)) static void run(const float* __restrict in0, float* __restrict out, const int64_t part, [[maybe_unused]] const int64_t parts) {
      {
        for (int64_t turn = 26 * part / parts; turn < 26 * (part + 1) / parts; turn++) {
          const int64_t i0 = turn / 13;
          const int64_t row = (turn % 13) * 64;
          const int64_t column = 0;
          const int64_t row_end = gopt_min<int64_t>(row + 64, 784);
          const int64_t column_end = gopt_min<int64_t>(column + 64, 16);
          float in1[4096];
          gopt_runtime::transpose(in0 + 12544 * i0 + 16 * row + column, 16, in1, 64, row_end - row, column_end - column);
          for (int64_t c = column; c < column_end; c++) {
#pragma omp simd
            for (int64_t r = row; r < row_end; r++) {
              const float v1 = in1[64 * c + r - 64 * column - row];
              const float v2 = gopt_exp(v1);
              out[12544 * i0 + 784 * c + r] = v2;
            }
          }
        }
      }
    }
  };
  const int threads = gopt_runtime::threads_now();
  gopt_runtime::share(threads, threads, [&](const int64_t part, int) {
    Shared::run(in0, out, part, threads);
  });
}

#include "gopt_math.h"
#include "gopt_team.h"
#include "gopt_transpose.h"
#include "kernels.h"

void gopt_kernel_0(const float* __restrict in0, float* __restrict out) {
  struct Shared {
    __attribute__((noinline)) static void run(const float* __restrict in0, float* __restrict out, const int64_t part, [[maybe_unused]] const int64_t parts) {
      {
        for (int64_t turn = 56 * part / parts; turn < 56 * (part + 1) / parts; turn++) {
          const int64_t i0 = turn / 28;
          const int64_t i1 = turn % 28;
          for (int64_t i2 = 0; i2 < 28; i2++) {
            alignas(64) float a4[16];
#pragma omp simd
            for (int64_t z = 0; z < 16; z++) a4[z] = (-__builtin_inff());
            const int64_t r5_low = gopt_max<int64_t>(-2 * i1 + 1, 0), r5_high = 3;
            for (int64_t r5 = r5_low; r5 < r5_high; r5++) {
              const int64_t r6_low = gopt_max<int64_t>(-2 * i2 + 1, 0), r6_high = 3;
              for (int64_t r6 = r6_low; r6 < r6_high; r6++) {
#pragma omp simd
                for (int64_t j7 = 0; j7 < 16; j7++) {
                  const float v8 = in0[16 * r6 + 1792 * i1 + 32 * i2 + 50176 * i0 + 896 * r5 + j7 - 912];
                  const float u9 = gopt_max<float>(a4[j7], v8);
                  a4[j7] = u9;
                }
              }
            }
#pragma omp simd
            for (int64_t i3 = 0; i3 < 16; i3++) {
              out[12544 * i0 + 16 * i2 + 448 * i1 + i3] = a4[i3];
            }
          }
        }
      }
    }
  };
  const int threads = gopt_runtime::threads_now();
  gopt_runtime::share(threads, threads, [&](const int64_t part, int) {
    Shared::run(in0, out, part, threads);
  });
}

