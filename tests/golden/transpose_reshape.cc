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
        for (int64_t turn = 12 * part / parts; turn < 12 * (part + 1) / parts; turn++) {
          const int64_t i0 = turn;
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
  };
  const int threads = gopt_runtime::threads_now();
  gopt_runtime::share(threads, threads, [&](const int64_t part, int) {
    Shared::run(in0, out, part, threads);
  });
}

