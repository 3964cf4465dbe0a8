// The few largest of rows, in order, each row read once: every lane keeps the first of what it reads, in registers, and
// warps, then blocks, take the first of what their lanes have.
#pragma once

#include "gopt_top_rows.cuh"

namespace gopt_runtime {
namespace rows {

template <class Order>
struct Item {
  Order order;
  uint32_t place;

  __device__ __forceinline__ bool operator<(const Item& o) const {
    return order < o.order || (order == o.order && place < o.place);
  }
};

// The first `few` of what was put in, in order; where less was, what comes after all else.
template <int few, class Order>
struct FirstFew {
  Item<Order> kept[few];

  __device__ __forceinline__ FirstFew() {
#pragma unroll
    for (int j = 0; j < few; j++) kept[j] = last();
  }
  __device__ __forceinline__ static Item<Order> last() { return {~Order(0), 0xffffffffu}; }
  __device__ __forceinline__ void put(const Item<Order>& own) {
    if (!(own < kept[few - 1])) return;
#pragma unroll
    for (int j = few - 1; j > 0; j--) kept[j] = own < kept[j - 1] ? kept[j - 1] : own < kept[j] ? own : kept[j];
    if (own < kept[0]) kept[0] = own;
  }
  __device__ __forceinline__ void drop_first() {
#pragma unroll
    for (int j = 0; j + 1 < few; j++) kept[j] = kept[j + 1];
    kept[few - 1] = last();
  }
};

// Of what all lanes of a warp have; lane r, below `few`, gets number r.
template <int few, class Order>
__device__ __forceinline__ Item<Order> first_of_warp(FirstFew<few, Order>& own) {
  static_assert(few <= 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  Item<Order> result = own.last();
#pragma unroll
  for (int r = 0; r < few; r++) {
    Item<Order> first = own.kept[0];
#pragma unroll
    for (unsigned distance = 16; distance > 0; distance /= 2) {
      const Item<Order> other = {__shfl_xor_sync(0xffffffffu, first.order, distance),
                                 __shfl_xor_sync(0xffffffffu, first.place, distance)};
      if (other < first) first = other;
    }
    if (lane == r) result = first;
    if (first.place == own.kept[0].place) own.drop_first();  // a place is one lane's, or of what comes after all
  }
  return result;
}

constexpr int kUsualFew = 4, kMostFew = 16;
// Of a block: what is kept is to be in registers.
template <int few>
constexpr int kMostThreadsOfFew = few > kUsualFew ? 128 : kTopThreads;

// `warps` have a row, or a part: one, or all of a block.
template <bool is_largest, int few, class T>
__global__ void __launch_bounds__(kMostThreadsOfFew<few>)
    take_few(const T* x, Top<T> top, int64_t count_of_parts, Parts parts, int warps) {
  using Order = OrderOf<is_largest, T>;
  constexpr int kAtOnce = 4;
  __shared__ Item<Order> of_warps[32 * few];
  gopt_let_next_begin();
  gopt_wait();
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32),
            of_block = static_cast<int>(blockDim.x / 32);
  const int64_t r = (static_cast<int64_t>(blockIdx.x) * of_block + warp) / warps, step = int64_t(32) * warps;
  if (r >= count_of_parts) return;  // whole warps, each of which has a row
  const int64_t length = parts.length(r);
  const T* const row = x + parts.begin(r);
  FirstFew<few, Order> own;
  for (int64_t first = warp % warps * 32 + lane; first < length; first += kAtOnce * step) {
    T read[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; j++) read[j] = first + j * step < length ? row[first + j * step] : T();
#pragma unroll
    for (int j = 0; j < kAtOnce; j++)
      if (first + j * step < length) own.put({order_of<is_largest>(read[j]), static_cast<uint32_t>(first + j * step)});
  }
  Item<Order> item = first_of_warp(own);
  if (warps > 1) {
    if (lane < few) of_warps[warp * few + lane] = item;
    __syncthreads();
    if (warp > 0) return;
    FirstFew<few, Order> of_lane;
#pragma unroll
    for (int j = 0; j < few; j++)
      if (lane < warps) of_lane.kept[j] = of_warps[lane * few + j];
    item = first_of_warp(of_lane);
  }
  if (lane < top.count) top.put(row, parts, r, lane, item.place);
}

// Parts of as many elements as are wanted, `top.count`, or more, of which there may be kMostFew; places are of 32 bits.
template <bool is_largest, class T>
void take_first_few(const T* x, const Top<T>& top, int64_t count_of_parts, const Parts& parts, cudaStream_t stream) {
  const auto launch = [&](auto most) {
    constexpr int few = decltype(most)::value;
    constexpr int64_t kEach = 256, kMostWarps = 4096, kRowsOfBlock = 4;
    int warps = 1;
    while (warps < kMostThreadsOfFew<few> / 32 && parts.most() > kEach * warps && count_of_parts * warps < kMostWarps)
      warps *= 2;
    const int64_t blocks = warps > 1 ? count_of_parts : (count_of_parts + kRowsOfBlock - 1) / kRowsOfBlock,
                  threads = 32 * (warps > 1 ? warps : kRowsOfBlock);
    launch_kernel(&take_few<is_largest, few, T>, blocks, threads, stream, x, top, count_of_parts, parts, warps);
  };
  if (top.count == 1)
    launch(std::integral_constant<int, 1>());
  else if (top.count <= kUsualFew)
    launch(std::integral_constant<int, kUsualFew>());
  else
    launch(std::integral_constant<int, kMostFew>());
}

}  // namespace rows
}  // namespace gopt_runtime
