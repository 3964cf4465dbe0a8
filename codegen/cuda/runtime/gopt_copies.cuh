// Copies into shared memory that go on beside what a thread does next.
#pragma once

#include <cstdint>

namespace gopt_runtime {
namespace tiles {

constexpr int kChunk = 16;  // bytes of one asynchronous copy

// In shared memory, as instructions have it.
__device__ __forceinline__ unsigned address_of(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

__device__ __forceinline__ void copy_chunk(unsigned to, const void* from, bool is_there) {
  const int bytes = is_there ? kChunk : 0;  // what is not there is zero
  asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" ::"r"(to), "l"(from), "r"(bytes));
}
// A part of a chunk: 4, 8 or 16 bytes.
template <int kBytes>
__device__ __forceinline__ void copy_piece(unsigned to, const void* from, bool is_there) {
  const int bytes = is_there ? kBytes : 0;
  asm volatile("cp.async.ca.shared.global [%0],[%1],%2,%3;" ::"r"(to), "l"(from), "n"(kBytes), "r"(bytes));
}
__device__ __forceinline__ void end_stage() { asm volatile("cp.async.commit_group;"); }
template <int kPending>
__device__ __forceinline__ void wait_for_stages() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending));
}

// Likewise where a thread reads what it has copied itself, with no barrier between.
template <int kPending>
__device__ __forceinline__ void wait_for_own_stages() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// For other blocks that wait for it to be there.
__device__ __forceinline__ void write_for_all(float* at, float number) {
  asm volatile("st.relaxed.gpu.global.f32 [%0],%1;" ::"l"(at), "f"(number) : "memory");
}
__device__ __forceinline__ void write_for_all(uint64_t* at, uint64_t number) {
  asm volatile("st.relaxed.gpu.global.u64 [%0],%1;" ::"l"(at), "l"(number) : "memory");
}
// What other blocks write meanwhile, from where all see it. Each number is whole, four are not one.
__device__ __forceinline__ float4 read_anew(const float* at) {
  float4 four;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0,%1,%2,%3},[%4];"
               : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
               : "l"(at)
               : "memory");
  return four;
}
__device__ __forceinline__ void read_anew(const uint64_t* at, uint64_t& first, uint64_t& second) {
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0,%1},[%2];" : "=l"(first), "=l"(second) : "l"(at) : "memory");
}

}  // namespace tiles
}  // namespace gopt_runtime
