// Enough of CUDA on the processor to run the kernels of tiles: a thread of the device is a thread here, the blocks of a
// cluster run side by side, clusters one after another. Copies are made at once, so that indexes are tested, not waits.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#undef __device__
#undef __global__
#undef __host__
#undef __forceinline__
#undef __noinline__
#undef __launch_bounds__
#undef __grid_constant__
#define __device__
#define __global__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
#define __CUDA_ARCH__ 900

inline thread_local uint3 threadIdx, blockIdx;
inline dim3 gridDim, blockDim;

namespace emulation {

constexpr unsigned kWarp = 32, kMostBlocks = 8, kMostWarps = 8, kMemory = 256 * 1024;
using Barrier = std::unique_ptr<std::barrier<>>;

struct Block {
  alignas(128) char memory[kMemory];
  Barrier barrier;
  std::array<Barrier, kMostWarps> warps;
};
inline std::array<Block, kMostBlocks> blocks;
inline Barrier cluster_barrier;

inline Block& own_block() { return blocks[blockIdx.y]; }
inline void wait_for_warp() { own_block().warps[threadIdx.x / kWarp]->arrive_and_wait(); }
inline Barrier barrier_of(unsigned threads) { return std::make_unique<std::barrier<>>(threads); }

template <class Body>
void launch(dim3 grid, unsigned threads, const Body& body) {
  gridDim = grid, blockDim = dim3(threads);
  for (unsigned i = 0; i < grid.x * grid.z; i++) {
    const unsigned x = i % grid.x, z = i / grid.x;
    cluster_barrier = barrier_of(threads * grid.y);
    std::vector<std::thread> running;
    for (unsigned y = 0; y < grid.y; y++) {
      blocks[y].barrier = barrier_of(threads);
      for (unsigned w = 0; w < threads / kWarp; w++) blocks[y].warps[w] = barrier_of(kWarp);
    }
    for (unsigned y = 0; y < grid.y; y++)
      for (unsigned t = 0; t < threads; t++)
        running.emplace_back([&body, x, y, z, t] {
          threadIdx = {t, 0, 0}, blockIdx = {x, y, z};
          body();
        });
    for (std::thread& thread : running) thread.join();
  }
}

}  // namespace emulation

inline void __syncwarp() { emulation::wait_for_warp(); }
inline void __syncthreads() { emulation::own_block().barrier->arrive_and_wait(); }
inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline unsigned __float_as_uint(float x) {
  unsigned bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
using std::max, std::min;
