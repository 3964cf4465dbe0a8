#include "gopt_math.h"
#include "gopt_team.h"
#include "kernels.h"

#include "gopt_math.h"
#include "gopt_team.h"
#include "kernels.h"

void gopt_kernel_0(const float* __restrict in0, float* __restrict out) {
  struct Shared {
    __attribute__((noinline)) static void run(const float* __restrict in0, float* __restrict out, const int64_t part, [[maybe_unused]] const int64_t parts) {
      {
        for (int64_t turn = 768 * part / parts; turn < 768 * (part + 1) / parts; turn++) {
          const int64_t i0 = turn;
          float t2 = (-__builtin_inff());
          int t2_nan = 0;
#pragma omp simd reduction(max:t2) reduction(|:t2_nan)
          for (int64_t r3 = 0; r3 < 128; r3++) {
            const float v4 = in0[128 * i0 + r3];
            const float v5 = v4;
            t2 = v5 > t2 ? v5 : t2;
            t2_nan |= v5 != v5;
          }
          if (t2_nan) t2 = NAN;
          float t6 = 0.0f;
          alignas(64) float a11[128];
#pragma omp simd reduction(+:t6)
          for (int64_t r7 = 0; r7 < 128; r7++) {
            const float v8 = in0[128 * i0 + r7];
            const float v9 = (v8 - t2);
            const float v10 = gopt_exp(v9);
            t6 = t6 + v10;
            a11[r7] = v10;
          }
          const float v12 = (1.0f / t6);
#pragma omp simd
          for (int64_t i1 = 0; i1 < 128; i1++) {
            const float v13 = (a11[i1] * v12);
            out[128 * i0 + i1] = v13;
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

