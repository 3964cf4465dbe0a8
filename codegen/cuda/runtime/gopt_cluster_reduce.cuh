// Sums and the like of what the threads of a cluster's blocks have, for kernels whose blocks share a row.
#pragma once

#include "gopt_cluster.cuh"

// The values of all threads of all kBlocks blocks of the cluster combined, in an order that is always the same; every
// thread gets the result. Blocks are of a power of two of whole warps, and all their threads come here. With kBeside,
// of every so-manieth thread, a power of two up to four: each has the result of its own row.
template <int kBlocks, int kBeside = 1, class T, class Combine>
__device__ inline T gopt_cluster_reduce(T value, Combine combine) {
#if __CUDA_ARCH__ >= 900
  using namespace gopt_runtime::tiles;
  constexpr unsigned kWarpsAtOnce = 32 / kBeside;
  T* const room = static_cast<T*>(room_of_block());  // the block's, then those of each warp
  const unsigned warps = blockDim.x / 32, lane = threadIdx.x % 32, row = threadIdx.x % kBeside;
  for (int step = 16; step >= kBeside; step /= 2) value = combine(value, (T)__shfl_xor_sync(0xffffffffu, value, step));
  if (lane < kBeside) room[kBeside + threadIdx.x / 32 * kBeside + lane] = value;
  __syncthreads();
  unsigned warp = lane / kBeside % warps;
  value = room[kBeside + warp * kBeside + row];
  for (warp += kWarpsAtOnce; warp < warps; warp += kWarpsAtOnce)
    value = combine(value, room[kBeside + warp * kBeside + row]);
  for (unsigned step = (warps < kWarpsAtOnce ? warps : kWarpsAtOnce) / 2; step > 0; step /= 2)
    value = combine(value, (T)__shfl_xor_sync(0xffffffffu, value, (int)(step * kBeside)));
  if (threadIdx.x < kBeside) room[threadIdx.x] = value;
  wait_for_cluster();
  value = *in_block(room + row, 0);
#pragma unroll
  for (int block = 1; block < kBlocks; block++) value = combine(value, *in_block(room + row, block));
  wait_for_cluster();  // what is read stays there until it was
#endif
  return value;
}
