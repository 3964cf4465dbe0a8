// Blocks of a cluster: a barrier of all, and each other's shared memory. CUDA's cooperative groups have the same, in
// headers that take longer to compile than a kernel.
#pragma once

namespace gopt_runtime {
namespace tiles {

// Of this block, the same for all its threads; uninitialized.
template <class T>
__device__ __forceinline__ T& shared_of_block() {
  __shared__ __align__(16) char room[sizeof(T)];
  return *reinterpret_cast<T*>(room);
}

// Shared memory of this block for four numbers of eight bytes of its own, and as many of each warp.
__device__ __forceinline__ void* room_of_block() {
  __shared__ double room[4 * 33];
  return room;
}

#if __CUDA_ARCH__ >= 900
// Until all threads of all blocks are here; what they wrote before they arrived can be read.
__device__ __forceinline__ void arrive_at_cluster() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
__device__ __forceinline__ void leave_cluster() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
__device__ __forceinline__ void wait_for_cluster() {
  arrive_at_cluster();
  leave_cluster();
}

// Where in a block's shared memory lies what is there in this block's.
template <class T>
__device__ __forceinline__ const T* in_block(const T* own, int block) {
  const T* there;
  asm("mapa.u64 %0,%1,%2;" : "=l"(there) : "l"(own), "r"(block));
  return there;
}
#endif

}  // namespace tiles
}  // namespace gopt_runtime
