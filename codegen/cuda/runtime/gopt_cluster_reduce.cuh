// Sums and the like of what the threads of a cluster's blocks have, for kernels whose blocks share a row.
#pragma once

#include "gopt_cluster.cuh"

// The values of all threads of all kBlocks blocks of the cluster combined, in an order that is always the same; every
// thread gets the result. Blocks are of a power of two of whole warps, and all their threads come here.
template <int kBlocks, class T, class Combine>
__device__ inline T gopt_cluster_reduce(T value, Combine combine) {
#if __CUDA_ARCH__ >= 900
  using namespace gopt_runtime::tiles;
  T* const room = static_cast<T*>(room_of_block());  // the block's, then one a warp
  for (int step = 16; step > 0; step /= 2) value = combine(value, (T)__shfl_xor_sync(0xffffffffu, value, step));
  const unsigned warps = blockDim.x / 32;
  if (threadIdx.x % 32 == 0) room[1 + threadIdx.x / 32] = value;
  __syncthreads();
  value = room[1 + threadIdx.x % 32 % warps];
  for (unsigned step = warps / 2; step > 0; step /= 2)
    value = combine(value, (T)__shfl_xor_sync(0xffffffffu, value, (int)step));
  if (threadIdx.x == 0) room[0] = value;
  wait_for_cluster();
  value = *in_block(room, 0);
#pragma unroll
  for (int block = 1; block < kBlocks; block++) value = combine(value, *in_block(room, block));
  wait_for_cluster();  // what is read stays there until it was
#endif
  return value;
}
