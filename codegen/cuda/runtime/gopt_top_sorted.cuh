// What is largest in a row, in order, of which much is wanted: the blocks of a cluster sort all of it.
#pragma once

#include "gopt_cluster.cuh"
#include "gopt_top_rows.cuh"

namespace gopt_runtime {
namespace rows {

// A cluster's blocks have a row, or a part; each has `room` of its elements at a time, a power of two, in its shared
// memory (Batcher's bitonic sort). Pairs whose elements lie in two blocks are half the one's, half the other's.
template <bool is_largest, class T>
__global__ void __launch_bounds__(kTopThreads) sort_rows(const T* x, Top<T> top, Parts parts, int room) {
#if __CUDA_ARCH__ >= 900
  using Order = OrderOf<is_largest, T>;
  extern __shared__ __align__(16) char shared_memory[];
  gopt_let_next_begin();
  gopt_wait();
  const auto block = static_cast<int>(blockIdx.y), count = room * static_cast<int>(gridDim.y), first = block * room,
             thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int64_t length = parts.length(blockIdx.x);
  const T* const row = x + parts.begin(blockIdx.x);
  const Items<Order> items(shared_memory, room);
  for (int k = thread; k < room; k += threads) {
    const bool is_there = first + k < length;
    items.put(k, is_there ? order_of<is_largest>(row[first + k]) : ~Order(0),
              is_there ? static_cast<uint32_t>(first + k) : 0xffffffffu);
  }
  __syncthreads();
  for (int size = 2; size <= count; size *= 2) {
    int stride = size / 2;
    for (; stride >= room; stride /= 2) {
      tiles::wait_for_cluster();
      const int other = block ^ (stride / room);
      const Items<Order> theirs(const_cast<char*>(tiles::in_block(shared_memory, other)), room);
      const Items<Order>&low = block < other ? items : theirs, &high = block < other ? theirs : items;
      const int half = block < other ? 0 : room / 2;
      for (int k = half + thread; k < half + room / 2; k += threads) arrange(low, k, high, k, (first & size) == 0);
    }
    if (size > room) tiles::wait_for_cluster();
    merge_items(items, first, size, stride, room);
  }
  __syncthreads();
  for (int k = thread; k < room && first + k < top.count; k += threads)
    top.put(row, parts, blockIdx.x, first + k, items.place(k));
#endif
}

}  // namespace rows
}  // namespace gopt_runtime
