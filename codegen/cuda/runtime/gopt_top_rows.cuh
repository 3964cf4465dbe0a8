// What is largest in rows, in order: of long rows of which few are wanted, what comes before a
// sample's element is sorted, or, where that is too little or too much, what comes before the last, which is found by
// its digits; of others each element's rank is counted.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gopt_launch.h"
#include "gopt_row_sizes.h"

namespace gopt_runtime {
namespace rows {

// Less for what comes first. A NaN is above all numbers, and zeros are equal.
template <bool is_largest, class T>
__device__ __forceinline__ auto order_of(T x) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, unsigned long long>;
  constexpr Bits kSign = Bits(1) << (8 * sizeof(T) - 1);
  Bits bits;
  if constexpr (std::is_same_v<T, float>)
    bits = __float_as_uint(x + 0.0f);  // of -0 it makes 0
  else if constexpr (std::is_same_v<T, double>)
    bits = static_cast<Bits>(__double_as_longlong(x + 0.0));
  else
    bits = static_cast<Bits>(x);
  if constexpr (std::is_floating_point_v<T>)
    bits = x != x ? ~Bits(0) : bits ^ ((bits & kSign) != 0 ? ~Bits(0) : kSign);
  else
    bits ^= kSign;
  return is_largest ? static_cast<Bits>(~bits) : bits;
}
template <bool is_largest, class T>
using OrderOf = std::conditional_t<sizeof(T) == 4, uint32_t, unsigned long long>;

// Rows that lie beside each other, each in as many parts, whose last has what is over.
struct Parts {
  int64_t row, of_row = 1;  // elements of a row; its parts

  __device__ __forceinline__ int64_t offset(int64_t r) const { return r % of_row * (row / of_row); }  // in the row
  __device__ __forceinline__ int64_t begin(int64_t r) const { return r / of_row * row + offset(r); }
  __device__ __forceinline__ int64_t length(int64_t r) const {
    return r % of_row + 1 < of_row ? row / of_row : row - offset(r);
  }
  int64_t most() const { return row - (of_row - 1) * (row / of_row); }  // elements of the last, the longest
};

// What nobody reads is null. `given`: the places of elements that are themselves the largest of parts, in the order of
// these, so that of equal ones the first is still the first.
template <class T>
struct Top {
  T* values;
  int64_t* places;
  int64_t count;
  const int64_t* given = nullptr;

  // Of part r, which begins at `part`: element `place` has this rank.
  __device__ __forceinline__ void put(const T* part, const Parts& parts, int64_t r, int64_t rank, int64_t place) const {
    if (values) values[r * count + rank] = part[place];
    if (places) places[r * count + rank] = given ? given[parts.begin(r) + place] : parts.offset(r) + place;
  }
};

// ---- by ranks ----

constexpr int kRankThreads = 256;

// Those of a tile that come before an element; `is_equal_before`: what is equal does, too.
template <bool is_equal_before, class Order>
__device__ __forceinline__ int count_before(const Order* orders, int count, Order order) {
  int before = 0;
#pragma unroll 16
  for (int k = 0; k < count; k++) before += (is_equal_before ? orders[k] <= order : orders[k] < order) ? 1 : 0;
  return before;
}

// A thread has an element, and counts those that come before it, a tile of as many as there are threads at a time.
template <bool is_largest, class T>
__global__ void __launch_bounds__(kRankThreads) rank_rows(const T* x, Top<T> top, int64_t length) {
  using Order = OrderOf<is_largest, T>;
  __shared__ __align__(16) Order orders[kRankThreads];
  gopt_let_next_begin();
  gopt_wait();
  const int64_t tiles = (length + blockDim.x - 1) / blockDim.x, r = blockIdx.x / tiles, tile = blockIdx.x % tiles,
                own = tile * blockDim.x + threadIdx.x;
  const T* const row = x + r * length;
  const Order order = own < length ? order_of<is_largest>(row[own]) : 0;
  int64_t rank = 0;
  for (int64_t other = 0; other < tiles; other++) {
    const int64_t first = other * blockDim.x;
    __syncthreads();
    // What is beyond the row comes after all; what is equal to that in the last tile comes after it by its place.
    orders[threadIdx.x] = first + threadIdx.x < length ? order_of<is_largest>(row[first + threadIdx.x]) : ~Order(0);
    __syncthreads();
    if (other == tile)
      rank += count_before<true>(orders, static_cast<int>(threadIdx.x), order) +
              count_before<false>(orders + threadIdx.x, static_cast<int>(blockDim.x - threadIdx.x), order);
    else if (other < tile)
      rank += count_before<true>(orders, static_cast<int>(blockDim.x), order);
    else
      rank += count_before<false>(orders, static_cast<int>(blockDim.x), order);
  }
  if (own < length && rank < top.count) top.put(row, {length}, r, rank, own);
}

// ---- by digits ----

constexpr int kTopThreads = 1024, kDigits = 256;

// Adds the digits of a warp's lanes that have one: what many have, as is usual, at once.
__device__ __forceinline__ void count_digits(int* counts, bool has, unsigned digit) {
  constexpr int kAtOnce = 2;
  const unsigned lane = threadIdx.x % 32;
  unsigned left = __ballot_sync(0xffffffffu, has);
#pragma unroll
  for (int k = 0; k < kAtOnce; k++) {
    if (left == 0) return;
    const int leader = __ffs(static_cast<int>(left)) - 1;
    const unsigned common = __shfl_sync(0xffffffffu, digit, leader);
    const unsigned same = __ballot_sync(0xffffffffu, (left >> lane & 1u) != 0 && digit == common);
    if (lane == static_cast<unsigned>(leader)) atomicAdd(&counts[common], __popc(same));
    left &= ~same;
  }
  if ((left >> lane & 1u) != 0) atomicAdd(&counts[digit], 1);
}

struct FoundDigit {
  int digit, before, count;  // elements with less digits, with this one
};

// By one warp: the digit that number `wanted` (from 1 on) of the counted ones has.
__device__ __forceinline__ void find_digit(const int* counts, int wanted, FoundDigit& found) {
  constexpr int kEach = kDigits / 32;
  const int lane = static_cast<int>(threadIdx.x % 32);
  int own = 0;
  for (int k = 0; k < kEach; k++) own += counts[lane * kEach + k];
  int with = own;
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, with, distance);
    if (lane >= static_cast<int>(distance)) with += other;
  }
  if (with < wanted || with - own >= wanted) return;
  int before = with - own, digit = lane * kEach;
  while (before + counts[digit] < wanted) before += counts[digit++];
  found = {digit, before, counts[digit]};
}

// Elements that come before `last`, and of those equal to it the first so many; negative: all.
template <class Order>
struct Last {
  Order last;
  int equals;
};

// By the block: which is the last of `count`. `order(k)` is that of element k.
template <class Order, class OrderAt>
__device__ Last<Order> find_last(const OrderAt& order, int64_t length, int count) {
  __shared__ int counts[kDigits];
  __shared__ FoundDigit found;
  Order last = 0;
  int left = count;
  for (int shift = 8 * sizeof(Order) - 8; shift >= 0; shift -= 8) {
    for (int k = static_cast<int>(threadIdx.x); k < kDigits; k += static_cast<int>(blockDim.x)) counts[k] = 0;
    __syncthreads();
    // The digits before this one, which have to be those that were found, and this one.
    const Order above = shift == 8 * sizeof(Order) - 8 ? 0 : ~Order(0) << (shift + 8);
    for (int64_t first = 0; first < length; first += blockDim.x) {
      const int64_t k = first + threadIdx.x;
      const Order own = k < length ? order(k) : 0;
      count_digits(counts, k < length && (own & above) == last, static_cast<unsigned>(own >> shift) % kDigits);
    }
    __syncthreads();
    if (threadIdx.x < 32) find_digit(counts, left, found);
    __syncthreads();
    last |= static_cast<Order>(found.digit) << shift;
    left -= found.before;
    if (found.count == left) return {last | ((Order(1) << shift) - 1), -1};
  }
  return {last, left};
}

// Elements and their places, in shared memory.
template <class Order>
struct Items {
  static constexpr int kBytes = sizeof(Order) + sizeof(uint32_t);  // of one
  Order* orders;
  uint32_t* places;

  __device__ __forceinline__ Items(void* memory, int room)
      : orders(static_cast<Order*>(memory)), places(reinterpret_cast<uint32_t*>(orders + room)) {}
  __device__ __forceinline__ Order order(int at) const { return orders[at]; }
  __device__ __forceinline__ int64_t place(int at) const { return places[at]; }
  __device__ __forceinline__ void put(int at, Order order, uint32_t place) const {
    orders[at] = order;
    places[at] = place;
  }
};
template <>
struct Items<uint32_t> {  // both are one number
  static constexpr int kBytes = sizeof(unsigned long long);
  unsigned long long* items;

  __device__ __forceinline__ Items(void* memory, int) : items(static_cast<unsigned long long*>(memory)) {}
  __device__ __forceinline__ uint32_t order(int at) const { return static_cast<uint32_t>(items[at] >> 32); }
  __device__ __forceinline__ int64_t place(int at) const { return static_cast<uint32_t>(items[at]); }
  __device__ __forceinline__ void put(int at, uint32_t order, uint32_t place) const {
    items[at] = static_cast<unsigned long long>(order) << 32 | place;
  }
};

// An item and one that is to come after it, or before it where they are not to rise.
template <class Order>
__device__ __forceinline__ void arrange(const Items<Order>& of_low, int low, const Items<Order>& of_high, int high,
                                        bool is_rising) {
  if constexpr (sizeof(Order) == sizeof(uint32_t)) {
    const unsigned long long a = of_low.items[low], b = of_high.items[high];
    if ((b < a) != is_rising) return;
    of_low.items[low] = b;
    of_high.items[high] = a;
  } else {
    const Order a = of_low.orders[low], b = of_high.orders[high];
    const uint32_t of_a = of_low.places[low], of_b = of_high.places[high];
    if ((b < a || (b == a && of_b < of_a)) != is_rising) return;
    of_low.put(low, b, of_b);
    of_high.put(high, a, of_a);
  }
}

// By the block, of a power of two, which are those from `first` on of more: from this stride on what makes sorted parts
// of `size` from two of half of it. Pairs that are no more than 32 apart are of the same 64 items, which one warp has.
template <class Order>
__device__ __forceinline__ void merge_items(const Items<Order>& items, int first, int size, int stride, int count) {
  for (; stride > 0; stride /= 2) {
    if (stride >= 32)
      __syncthreads();
    else
      __syncwarp();
    for (int k = static_cast<int>(threadIdx.x); k < count / 2; k += static_cast<int>(blockDim.x)) {
      const int low = 2 * k - (k & (stride - 1));
      arrange(items, low, items, low + stride, ((first + low) & size) == 0);
    }
  }
}

// By the block, of a power of two (Batcher's bitonic sort).
template <class Order>
__device__ void sort_items(const Items<Order>& items, int count) {
  for (int size = 2; size <= count; size *= 2) merge_items(items, 0, size, size / 2, count);
  __syncthreads();
}

// The number among those of the block, in the order of threads, of which `is` holds, after `begin`; which becomes the
// number after the last.
__device__ __forceinline__ int numbered(bool is, int& begin) {
  __shared__ int of_warps[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, those = __ballot_sync(0xffffffffu, is);
  __syncthreads();  // until all have read what was there
  if (lane == 0) of_warps[warp] = __popc(those);
  __syncthreads();
  int number = begin + __popc(those & ((1u << lane) - 1));
  for (unsigned w = 0; w < blockDim.x / 32; w++) {
    if (w < warp) number += of_warps[w];
    begin += of_warps[w];
  }
  return number;
}

// The first `count` of a row, in any order.
template <class Order, class OrderAt>
__device__ void take_first(const OrderAt& order, int64_t length, int count, const Items<Order>& items) {
  __shared__ int taken;
  if (threadIdx.x == 0) taken = 0;
  const Last<Order> until = find_last<Order>(order, length, count);
  __syncthreads();
  const unsigned lane = threadIdx.x % 32;
  for (int64_t first = 0; first < length; first += blockDim.x) {
    const int64_t k = first + threadIdx.x;
    const Order own = k < length ? order(k) : 0;
    const bool is = k < length && (own < until.last || (own == until.last && until.equals < 0));
    const unsigned those = __ballot_sync(0xffffffffu, is);
    int begin = 0;
    if (lane == 0 && those != 0) begin = atomicAdd(&taken, __popc(those));
    begin = __shfl_sync(0xffffffffu, begin, 0);
    if (is) items.put(begin + __popc(those & ((1u << lane) - 1)), own, static_cast<uint32_t>(k));
  }
  int number = 0;
  for (int64_t first = 0; first < length && number < until.equals; first += blockDim.x) {
    const int64_t k = first + threadIdx.x;
    const bool is = k < length && order(k) == until.last;
    const int own = numbered(is, number);
    if (is && own < until.equals) items.put(count - until.equals + own, until.last, static_cast<uint32_t>(k));
  }
  __syncthreads();
}

// What comes before an element of a sample, by which there are about as many as have room, or half as many; the number
// of these, which is less than `count` or beyond the room where the sample was not like the row.
template <class Order, class OrderAt>
__device__ int take_by_sample(const OrderAt& order, int64_t length, int count, const Items<Order>& items, int room,
                              int samples) {
  constexpr int kAtOnce = 4;
  __shared__ int taken;
  for (int k = static_cast<int>(threadIdx.x); k < samples; k += static_cast<int>(blockDim.x))
    items.put(k, order(k * length / samples), static_cast<uint32_t>(k));
  if (threadIdx.x == 0) taken = 0;
  __syncthreads();
  sort_items(items, samples);
  const int64_t rank = static_cast<int64_t>(count + room) / 2 * samples / length;
  const Order last = items.order(static_cast<int>(rank));  // below `samples`: the room is less than the row
  __syncthreads();
  const unsigned lane = threadIdx.x % 32;
  for (int64_t first = 0; first < length; first += kAtOnce * static_cast<int64_t>(blockDim.x)) {
    Order own[kAtOnce];
    const auto place = [&](int j) { return first + j * static_cast<int64_t>(blockDim.x) + threadIdx.x; };
#pragma unroll
    for (int j = 0; j < kAtOnce; j++) own[j] = place(j) < length ? order(place(j)) : 0;
#pragma unroll
    for (int j = 0; j < kAtOnce; j++) {
      const bool is = place(j) < length && own[j] <= last;
      const unsigned those = __ballot_sync(0xffffffffu, is);
      if (those == 0) continue;
      int begin = 0;
      if (lane == 0) begin = atomicAdd(&taken, __popc(those));
      const int at = __shfl_sync(0xffffffffu, begin, 0) + __popc(those & ((1u << lane) - 1));
      if (is && at < room) items.put(at, own[j], static_cast<uint32_t>(place(j)));
    }
  }
  __syncthreads();
  return taken;
}

// A block has a row, or a part. In its shared memory are `room` items, a power of two, and at first a sample of so
// many.
template <bool is_largest, class T>
__global__ void __launch_bounds__(kTopThreads) select_rows(const T* x, Top<T> top, Parts parts, int room, int samples) {
  using Order = OrderOf<is_largest, T>;
  extern __shared__ __align__(16) char shared_memory[];
  gopt_let_next_begin();
  gopt_wait();
  const Items<Order> items(shared_memory, room);
  const int64_t length = parts.length(blockIdx.x);
  const T* const row = x + parts.begin(blockIdx.x);
  const auto order = [&](int64_t k) { return order_of<is_largest>(row[k]); };
  auto count = static_cast<int>(length);
  if (room >= length) {
    for (int k = static_cast<int>(threadIdx.x); k < length; k += static_cast<int>(blockDim.x))
      items.put(k, order(k), static_cast<uint32_t>(k));
  } else {
    const auto wanted = static_cast<int>(top.count);
    count = take_by_sample(order, length, wanted, items, room, samples);
    if (count < wanted || count > room) take_first(order, length, count = wanted, items);
  }
  for (int k = count + static_cast<int>(threadIdx.x); k < room; k += static_cast<int>(blockDim.x))
    items.put(k, ~Order(0), 0xffffffffu);
  __syncthreads();
  sort_items(items, room);
  for (int k = static_cast<int>(threadIdx.x); k < top.count; k += static_cast<int>(blockDim.x))
    top.put(row, parts, blockIdx.x, k, items.place(k));
}

}  // namespace rows
}  // namespace gopt_runtime
