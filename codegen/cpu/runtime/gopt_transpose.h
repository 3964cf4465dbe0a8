// Matrices of floats and bfloat16 turned over in blocks of a vector's lanes, in registers.
#pragma once

#include <cstdint>
#include <cstring>

#include "gopt_vector.h"

namespace gopt_runtime {

// Lanes of the lower or the upper halves of two vectors, in turn.
template <bool upper>
inline Vector interleave(Vector a, Vector b) {
#if defined(__AVX512F__)
  return upper ? __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
               : __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif defined(__AVX__)
  return upper ? __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
               : __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
  return upper ? __builtin_shufflevector(a, b, 2, 6, 3, 7) : __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}

// A square of kLanes rows: rows are interleaved with those half the square away, as often as halves it to one.
template <class From, class To>
inline void transpose_square(const From* in, int64_t in_stride, To* out, int64_t out_stride) {
  Vector rows[kLanes], other[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; i++) rows[i] = load_lanes(in + i * in_stride);
#pragma GCC unroll 4
  for (int round = 1; round < kLanes; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; i++) {
      other[2 * i] = interleave<false>(rows[i], rows[i + kLanes / 2]);
      other[2 * i + 1] = interleave<true>(rows[i], rows[i + kLanes / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; i++) rows[i] = other[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; i++) store_lanes_of(rows[i], out + i * out_stride);
}

#if defined(__AVX__) && !defined(__AVX512F__)
inline Vector load_two(const float* low, const float* high) {
  typedef float Half __attribute__((vector_size(sizeof(Vector) / 2)));
  Half first, second;
  std::memcpy(&first, low, sizeof first);
  std::memcpy(&second, high, sizeof second);
  return __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7);
}
// Halves of rows come beside those of the rows four after them, so that nothing crosses a vector's middle.
inline void transpose_square(const float* in, int64_t in_stride, float* out, int64_t out_stride) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; half++) {
    Vector rows[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) rows[i] = load_two(in + i * in_stride + 4 * half, in + (i + 4) * in_stride + 4 * half);
    const Vector a = __builtin_shufflevector(rows[0], rows[1], 0, 8, 1, 9, 4, 12, 5, 13),
                 b = __builtin_shufflevector(rows[0], rows[1], 2, 10, 3, 11, 6, 14, 7, 15),
                 c = __builtin_shufflevector(rows[2], rows[3], 0, 8, 1, 9, 4, 12, 5, 13),
                 d = __builtin_shufflevector(rows[2], rows[3], 2, 10, 3, 11, 6, 14, 7, 15);
    float* to = out + 4 * half * out_stride;
    store_lanes_of(__builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13), to);
    store_lanes_of(__builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15), to + out_stride);
    store_lanes_of(__builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13), to + 2 * out_stride);
    store_lanes_of(__builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15), to + 3 * out_stride);
  }
}
#endif

// What is turned over at once: the elements of a line of the cache from each of a square's rows.
constexpr int64_t kTurned = kLanes < 16 ? 16 : kLanes;

// Whole squares of so many rows and kTurned columns.
template <class From, class To>
inline void transpose_lines(const From* in, int64_t in_stride, To* out, int64_t out_stride, int64_t rows) {
  constexpr int64_t kAhead = 64;  // elements: more rows are read side by side than a processor fetches by itself
  for (int64_t r = 0; r < rows; r += kLanes) {
    const From* from = in + r * in_stride;
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; i++) __builtin_prefetch(from + i * in_stride + kAhead);
#pragma GCC unroll 4
    for (int64_t c = 0; c < kTurned; c += kLanes)
      transpose_square(from + c, in_stride, out + c * out_stride + r, out_stride);
  }
}

// Whether lines so far apart share few places of a core's first cache.
template <class T>
inline bool is_crowded(int64_t stride) {
  return stride * static_cast<int64_t>(sizeof(T)) % 4096 == 0;
}

// Whole squares, of so many rows and columns. Where what is written is crowded, it goes through a buffer, from which
// whole lines come; where what is read is, rows are few at once.
template <class From, class To>
inline void transpose_squares(const From* in, int64_t in_stride, To* out, int64_t out_stride, int64_t rows,
                              int64_t columns) {
  constexpr int64_t kRows = 64;
  const bool is_written_crowded = is_crowded<To>(out_stride);
  const int64_t at_once = is_written_crowded ? kRows : is_crowded<From>(in_stride) ? kTurned : rows;
  for (int64_t first = 0; first < rows; first += at_once) {
    const int64_t count = at_once < rows - first ? at_once : rows - first;
    for (int64_t c = 0; c < columns; c += kTurned) {
      const From* from = in + first * in_stride + c;
      To* to = out + c * out_stride + first;
      if (!is_written_crowded) {
        transpose_lines(from, in_stride, to, out_stride, count);
        continue;
      }
      alignas(64) To buffer[kTurned * kRows];
      transpose_lines(from, in_stride, buffer, kRows, count);
      for (int64_t k = 0; k < kTurned; k++)
        std::memcpy(static_cast<void*>(to + k * out_stride), buffer + k * kRows,
                    static_cast<size_t>(count) * sizeof(To));
    }
  }
}

// out[c * out_stride + r] = in[r * in_stride + c]
template <class From, class To>
inline void transpose(const From* in, int64_t in_stride, To* out, int64_t out_stride, int64_t rows, int64_t columns) {
  const int64_t whole_rows = rows / kLanes * kLanes, whole_columns = columns / kTurned * kTurned;
  transpose_squares(in, in_stride, out, out_stride, whole_rows, whole_columns);
  int64_t c = whole_columns;
  for (; c + kLanes <= columns; c += kLanes)
    for (int64_t r = 0; r < whole_rows; r += kLanes)
      transpose_square(in + r * in_stride + c, in_stride, out + c * out_stride + r, out_stride);
  for (int64_t k = 0; k < columns; k++)
    for (int64_t r = k < c ? whole_rows : 0; r < rows; r++)
      out[k * out_stride + r] = static_cast<To>(static_cast<float>(in[r * in_stride + k]));
}

}  // namespace gopt_runtime
