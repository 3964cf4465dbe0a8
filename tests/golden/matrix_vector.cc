#include "gopt_math.h"
#include "gopt_team.h"
#include "kernels.h"

#include "gopt_math.h"
#include "gopt_team.h"
#include "kernels.h"

void gopt_kernel_0(const float* __restrict in0, const float* __restrict in1, float* __restrict out) {
  struct Shared {
    __attribute__((noinline)) static void run(const float* __restrict in0, const float* __restrict in1, float* __restrict out, const int64_t part, [[maybe_unused]] const int64_t parts) {
      {
        for (int64_t turn = 2 * part / parts; turn < 2 * (part + 1) / parts; turn++) {
          const int64_t tile = turn * 256;
          const int64_t tile_end = gopt_min<int64_t>(tile + 256, 512);
          alignas(64) float a1[256];
#pragma omp simd
          for (int64_t z = 0; z < 256; z++) a1[z] = 0.0f;
          for (int64_t r2 = 0; r2 < 512; r2 += 4) {
            const float v4 = in0[r2];
            const float v8 = in0[r2 + 1];
            const float v12 = in0[r2 + 2];
            const float v16 = in0[r2 + 3];
#pragma omp simd
            for (int64_t j3 = tile; j3 < tile_end; j3++) {
              const float v5 = in1[512 * r2 + j3];
              const float v6 = (v4 * v5);
              const float u7 = a1[j3 - tile] + v6;
              const float v9 = in1[512 * r2 + j3 + 512];
              const float v10 = (v8 * v9);
              const float u11 = u7 + v10;
              const float v13 = in1[512 * r2 + j3 + 1024];
              const float v14 = (v12 * v13);
              const float u15 = u11 + v14;
              const float v17 = in1[512 * r2 + j3 + 1536];
              const float v18 = (v16 * v17);
              const float u19 = u15 + v18;
              a1[j3 - tile] = u19;
            }
          }
#pragma omp simd
          for (int64_t i0 = tile; i0 < tile_end; i0++) {
            const float v20 = gopt_tanh(a1[i0 - tile]);
            out[i0] = v20;
          }
        }
      }
    }
  };
  const int threads = gopt_runtime::threads_now();
  gopt_runtime::share(threads, threads, [&](const int64_t part, int) {
    Shared::run(in0, in1, out, part, threads);
  });
}

