// Matrices of floats and bfloat16 turned over in blocks of a vector's lanes, in registers.
#pragma once

#include <cstdint>

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

// out[c * out_stride + r] = in[r * in_stride + c]
template <class From, class To>
inline void transpose(const From* in, int64_t in_stride, To* out, int64_t out_stride, int64_t rows, int64_t columns) {
  constexpr int64_t kAhead = 64;  // elements: more rows are read side by side than a processor fetches by itself
  const int64_t whole_rows = rows / kLanes * kLanes, whole_columns = columns / kLanes * kLanes;
  for (int64_t c = 0; c < whole_columns; c += kLanes)
    for (int64_t r = 0; r < whole_rows; r += kLanes) {
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; i++) __builtin_prefetch(in + (r + i) * in_stride + c + kAhead);
      transpose_square(in + r * in_stride + c, in_stride, out + c * out_stride + r, out_stride);
    }
  for (int64_t c = 0; c < columns; c++)
    for (int64_t r = c < whole_columns ? whole_rows : 0; r < rows; r++)
      out[c * out_stride + r] = static_cast<To>(static_cast<float>(in[r * in_stride + c]));
}

}  // namespace gopt_runtime
