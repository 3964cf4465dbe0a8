// Running sums and products along rows.
#pragma once

#include <cstdint>

#include "gopt_launch.h"
#include "gopt_row_sizes.h"

namespace gopt_runtime {
namespace rows {

constexpr int kRunningThreads = 512, kRunningEach = 4;  // elements of a thread at a time, beside each other

template <Running how, class Sum>
__device__ __forceinline__ Sum run_on(Sum sum, Sum element) {
  return how == Running::Sum ? sum + element : sum * element;
}
template <Running how, class Sum>
__device__ __forceinline__ Sum none_of() {
  return how == Running::Sum ? Sum(0) : Sum(1);
}

template <class Sum>
struct Scanned {
  Sum before, all;
};

// What the threads before this one have, and all threads (Harris et al., GPU Gems 3, chapter 39, by warps).
template <Running how, class Sum>
__device__ Scanned<Sum> scan_block(Sum own) {
  __shared__ Sum of_warps[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  Sum with = own;
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const Sum other = __shfl_up_sync(0xffffffffu, with, distance);
    if (lane >= distance) with = run_on<how>(other, with);
  }
  __syncthreads();  // until all have read what was there
  if (lane == 31) of_warps[warp] = with;
  __syncthreads();
  Sum before = none_of<how, Sum>(), all = before;
  for (unsigned w = 0; w < warps; w++) {
    if (w == warp) before = all;
    all = run_on<how>(all, of_warps[w]);
  }
  const Sum in_warp = __shfl_up_sync(0xffffffffu, with, 1);
  return {lane == 0 ? before : run_on<how>(before, in_warp), all};
}

// A part of a row of elements that lie beside each other.
template <bool is_reversed, class T>
struct PartOfRow {
  int64_t row, length, begin, end;  // the row's first element; from `begin` to `end` in the order that it is run in

  __device__ __forceinline__ PartOfRow(int64_t length, int64_t parts, int64_t number)
      : row(number / parts * length),
        length(length),
        begin(number % parts * length / parts),
        end((number % parts + 1) * length / parts) {}
  __device__ __forceinline__ int64_t place(int64_t k) const { return row + (is_reversed ? length - 1 - k : k); }
  // Where its total is until it is run: among its results, of which there are enough.
  template <class Sum>
  __device__ __forceinline__ Sum* total(T* y) const {
    const auto first = reinterpret_cast<uintptr_t>(y + place(is_reversed ? end - 1 : begin));
    return reinterpret_cast<Sum*>((first + sizeof(Sum) - 1) / sizeof(Sum) * sizeof(Sum));
  }
};

template <Running how, bool is_reversed, class T>
__global__ void __launch_bounds__(kRunningThreads) total_parts(const T* x, T* y, int64_t row, int64_t parts) {
  using Sum = typename RunningSum<T>::Type;
  gopt_let_next_begin();
  gopt_wait();
  const PartOfRow<is_reversed, T> part(row, parts, blockIdx.x);
  Sum sum = none_of<how, Sum>();
#pragma unroll 8
  for (int64_t k = part.begin + threadIdx.x; k < part.end; k += blockDim.x)
    sum = run_on<how>(sum, static_cast<Sum>(x[part.place(k)]));
  sum = scan_block<how>(sum).all;
  if (threadIdx.x == 0) *part.template total<Sum>(y) = sum;
}

// In place of each part's total that of the parts before it: a block has a row, a thread a part.
template <Running how, bool is_reversed, class T>
__global__ void __launch_bounds__(kRunningThreads) run_totals(T* y, int64_t row, int64_t parts) {
  using Sum = typename RunningSum<T>::Type;
  gopt_let_next_begin();
  gopt_wait();
  const PartOfRow<is_reversed, T> part(row, parts, blockIdx.x * parts + threadIdx.x % parts);
  Sum* const total = part.template total<Sum>(y);
  const Sum before = scan_block<how>(threadIdx.x < parts ? *total : none_of<how, Sum>()).before;
  if (threadIdx.x < parts) *total = before;
}

// A block has a part of a row; of several, what is before it lies among its results.
template <Running how, bool is_reversed, bool is_exclusive, class T>
__global__ void __launch_bounds__(kRunningThreads) run_rows(const T* x, T* y, int64_t row, int64_t parts) {
  using Sum = typename RunningSum<T>::Type;
  gopt_let_next_begin();
  gopt_wait();
  const PartOfRow<is_reversed, T> part(row, parts, blockIdx.x);
  Sum before = parts > 1 ? *part.template total<Sum>(y) : none_of<how, Sum>();
  const int64_t step = static_cast<int64_t>(blockDim.x) * kRunningEach;
  for (int64_t base = part.begin; base < part.end; base += step) {
    const int64_t own = base + threadIdx.x * kRunningEach;
    Sum elements[kRunningEach], total = none_of<how, Sum>();
#pragma unroll
    for (int j = 0; j < kRunningEach; j++) {
      elements[j] = own + j < part.end ? static_cast<Sum>(x[part.place(own + j)]) : none_of<how, Sum>();
      total = run_on<how>(total, elements[j]);
    }
    const Scanned<Sum> scanned = scan_block<how>(total);  // all have read what is before
    Sum sum = run_on<how>(before, scanned.before);
#pragma unroll
    for (int j = 0; j < kRunningEach; j++) {
      const Sum with = run_on<how>(sum, elements[j]);
      if (own + j < part.end) y[part.place(own + j)] = static_cast<T>(is_exclusive ? sum : with);
      sum = with;
    }
    before = run_on<how>(before, scanned.all);
  }
}

// Each row is one thread's, in order: where totals of parts of it may leave the range that sums from its begin stay in,
// and where there are so many rows that each is read once in less time than twice by more threads.
template <Running how, bool is_reversed, bool is_exclusive, class T>
__global__ void __launch_bounds__(kRunningThreads) run_in_order(const T* x, T* __restrict__ y, RowSizes s) {
  using Sum = typename RunningSum<T>::Type;
  gopt_let_next_begin();
  gopt_wait();
  const int64_t own = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (own >= s.outer * s.inner) return;
  const int64_t first = own / s.inner * s.row * s.inner + own % s.inner;
  Sum sum = none_of<how, Sum>();
#pragma unroll 8
  for (int64_t k = 0; k < s.row; k++) {
    const int64_t at = first + (is_reversed ? s.row - 1 - k : k) * s.inner;
    const Sum with = run_on<how>(sum, static_cast<Sum>(x[at]));
    y[at] = static_cast<T>(is_exclusive ? sum : with);
    sum = with;
  }
}

// Elements beside each other each have their own sum: a warp's lanes have as many of these, the block's warps parts of
// the rows, whose totals come first.
template <Running how, bool is_reversed, bool is_exclusive, class T>
__global__ void __launch_bounds__(kRunningThreads) run_columns(const T* x, T* y, RowSizes s) {
  using Sum = typename RunningSum<T>::Type;
  __shared__ Sum totals[kRunningThreads];
  gopt_let_next_begin();
  gopt_wait();
  const int64_t lanes = (s.inner + 31) / 32, lane = threadIdx.x % 32, part = threadIdx.x / 32, parts = blockDim.x / 32,
                column = blockIdx.x % lanes * 32 + lane, length = (s.row + parts - 1) / parts, begin = part * length;
  const int64_t end = column >= s.inner ? begin : begin + length < s.row ? begin + length : s.row;
  const auto place = [&](int64_t k) {
    return (blockIdx.x / lanes * s.row + (is_reversed ? s.row - 1 - k : k)) * s.inner + column;
  };
  Sum sum = none_of<how, Sum>();
  if (parts > 1) {
#pragma unroll 4
    for (int64_t k = begin; k < end; k++) sum = run_on<how>(sum, static_cast<Sum>(x[place(k)]));
    totals[threadIdx.x] = sum;
    __syncthreads();
    sum = none_of<how, Sum>();
    for (int64_t other = 0; other < part; other++) sum = run_on<how>(sum, totals[other * 32 + lane]);
  }
#pragma unroll 4
  for (int64_t k = begin; k < end; k++) {
    const Sum with = run_on<how>(sum, static_cast<Sum>(x[place(k)]));
    y[place(k)] = static_cast<T>(is_exclusive ? sum : with);
    sum = with;
  }
}

// Three launches for few long rows, one for others. Sums of doubles and products of floats are made in order.
template <Running how, bool is_reversed, bool is_exclusive, class T>
void run_along_rows(const T* x, T* y, const RowSizes& s, cudaStream_t stream) {
  constexpr int64_t kBlocks = 264, kLong = 8192, kOfPart = 2048, kOfWarp = 8;  // blocks at once, elements
  constexpr int64_t kManyColumns = 65536, kFewColumns = 16384, kShort = 64;
  if (s.outer * s.row * s.inner == 0) return;
  const auto at_most = [](int64_t a, int64_t b) { return a < b ? a : b; };
  const bool has_many_columns = s.inner >= 32 && s.outer * s.inner >= (s.row <= kShort ? kFewColumns : kManyColumns);
  if (!kHasSafeParts<how, T> || has_many_columns) {
    constexpr int64_t kOfBlock = 64;
    launch_kernel(&run_in_order<how, is_reversed, is_exclusive, T>, (s.outer * s.inner + kOfBlock - 1) / kOfBlock,
                  kOfBlock, stream, x, y, s);
    return;
  }
  if (s.inner > 1) {
    const int64_t parts = at_most((s.row + kOfWarp - 1) / kOfWarp, kRunningThreads / 32);
    launch_kernel(&run_columns<how, is_reversed, is_exclusive, T>, s.outer * ((s.inner + 31) / 32), 32 * parts, stream,
                  x, y, s);
    return;
  }
  const int64_t each = (s.row + kRunningEach - 1) / kRunningEach,
                threads = at_most((each + 31) / 32 * 32, kRunningThreads);
  const int64_t wanted = s.row < kLong ? 1 : at_most(at_most(kBlocks / s.outer, s.row / kOfPart), kRunningThreads),
                parts = wanted > 1 ? wanted : 1;
  if (parts > 1) {
    launch_kernel(&total_parts<how, is_reversed, T>, s.outer * parts, threads, stream, x, y, s.row, parts);
    launch_kernel(&run_totals<how, is_reversed, T>, s.outer, (parts + 31) / 32 * 32, stream, y, s.row, parts);
  }
  launch_kernel(&run_rows<how, is_reversed, is_exclusive, T>, s.outer * parts, threads, stream, x, y, s.row, parts);
}

}  // namespace rows
}  // namespace gopt_runtime
