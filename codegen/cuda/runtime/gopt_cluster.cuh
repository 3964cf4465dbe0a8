// Blocks of a cluster: a barrier of all, and each other's shared memory. CUDA's cooperative groups have the same, in
// headers that take longer to compile than a kernel.
#pragma once

namespace gopt_runtime {
namespace tiles {

#if __CUDA_ARCH__ >= 900
// Until all threads of all blocks are here; what they wrote before can be read.
__device__ __forceinline__ void wait_for_cluster() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

// Where in a block's shared memory lies what is there in this block's.
template <class T>
__device__ __forceinline__ const T* in_block(const T* own, int block) {
  const T* there;
  asm("mapa.u64 %0,%1,%2;" : "=l"(there) : "l"(own), "r"(block));
  return there;
}

// Shared memory of this block for four numbers of eight bytes of its own, and as many of each warp.
__device__ __forceinline__ void* room_of_block() {
  __shared__ double room[4 * 33];
  return room;
}
#endif

}  // namespace tiles
}  // namespace gopt_runtime
