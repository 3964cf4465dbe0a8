// Barriers in shared memory that count bytes (mbarrier), and stores into other blocks of a cluster that count at them:
// who waits there has what was stored, without a fence or a barrier of all.
#pragma once

#include "gopt_copies.cuh"

namespace gopt_runtime {
namespace tiles {

#if __CUDA_ARCH__ >= 900

// Barriers at addresses in shared memory, whose phases end when as many have arrived, and as many bytes, as expected.
__device__ __forceinline__ void prepare(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0],%1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void expect_bytes(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void arrive_at(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _,[%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void wait_at(unsigned barrier, unsigned parity) {
  asm volatile(
      "{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done,[%0],%1; @!done bra again;}" ::"r"(
          barrier),
      "r"(parity)
      : "memory");
}

// Likewise where what came was stored by other blocks of the cluster.
__device__ __forceinline__ void wait_for_cluster_at(unsigned barrier, unsigned parity) {
  asm volatile(
      "{.reg .pred done; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done,[%0],%1; @!done bra "
      "again;}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// Until all threads of the cluster are here, and barriers that were prepared before can be used by all. What else they
// wrote is not ordered, as wait_for_cluster() does by a fence of the whole device.
__device__ __forceinline__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

// Where something of this block's shared memory is in that of another of its cluster.
__device__ __forceinline__ unsigned address_in(unsigned block, const void* own) {
  unsigned there;
  asm("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(there) : "r"(address_of(own)), "r"(block));
  return there;
}
// Stores numbers there, which count as bytes of a barrier beside them. Two lie at a multiple of eight bytes, four of 16.
__device__ __forceinline__ void send(unsigned to, float a, unsigned barrier) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0],%1,[%2];" ::"r"(to), "f"(a),
               "r"(barrier)
               : "memory");
}
__device__ __forceinline__ void send(unsigned to, float a, float b, unsigned barrier) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0],{%1,%2},[%3];" ::"r"(to), "f"(a),
               "f"(b), "r"(barrier)
               : "memory");
}
__device__ __forceinline__ void send(unsigned to, const float4& four, unsigned barrier) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0],{%1,%2,%3,%4},[%5];" ::"r"(to),
               "f"(four.x), "f"(four.y), "f"(four.z), "f"(four.w), "r"(barrier)
               : "memory");
}

#endif

}  // namespace tiles
}  // namespace gopt_runtime
