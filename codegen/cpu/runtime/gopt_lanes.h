// Short rows moved in vectors: parts of them, and elements that lie apart.
#pragma once

#include <cstdint>

#include "gopt_vector.h"

namespace gopt_runtime {

// Lanes [first, first + count) of a vector to the same lanes of `to`.
inline void store_lanes(const float* vector, float* to, int first, int count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>(((1u << count) - 1) << first), _mm512_load_ps(vector));
#else
  if (count == kLanes) {
    std::memcpy(to, vector, sizeof(Vector));
    return;
  }
  for (int i = first; i < first + count; i++) to[i] = vector[i];
#endif
}

// The first `count` elements, or all lanes; `others` in the rest.
inline Vector load_lanes(const float* from, int64_t count, Vector others) {
  if (count >= kLanes) return load(from);
#if defined(__AVX512F__)
  return _mm512_mask_loadu_ps(others, static_cast<__mmask16>((1u << count) - 1), from);
#else
  for (int64_t i = 0; i < count; i++) others[i] = from[i];
  return others;
#endif
}
inline void store_first(Vector v, float* to, int64_t count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>(count >= kLanes ? 0xffff : (1u << count) - 1), v);
#else
  std::memcpy(to, &v, sizeof(float) * static_cast<size_t>(count < kLanes ? count : kLanes));
#endif
}

// Lanes [first, first + count) of a vector to every step-th element from `to`.
inline void store_apart(const float* vector, float* to, int first, int count, int64_t step) {
#if defined(__AVX512F__)
  if (step == 2) {
    const __m512i pairs = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const __m512i low = _mm512_add_epi32(pairs, _mm512_set1_epi32(first)),
                  high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    const __m512 lanes = _mm512_load_ps(vector);
    const uint32_t places = 0x55555555u & (count == 16 ? ~0u : (1u << (2 * count)) - 1);
    const auto here = static_cast<__mmask16>(places), beyond = static_cast<__mmask16>(places >> 16);
    _mm512_mask_storeu_ps(to, here, _mm512_maskz_permutexvar_ps(here, low, lanes));
    if (count > 8) _mm512_mask_storeu_ps(to + 16, beyond, _mm512_maskz_permutexvar_ps(beyond, high, lanes));
    return;
  }
#endif
  for (int i = 0; i < count; i++) to[i * step] = vector[first + i];
}

// Every stride-th of the elements from `from`. Rows are short: the ends of vectors are masked, not left to a loop.
inline void copy_row(const float* from, float* to, int64_t count, int64_t stride) {
#if defined(__AVX512F__)
  const auto first = [](int64_t lanes) { return static_cast<__mmask16>(lanes >= 16 ? 0xffff : (1u << lanes) - 1); };
  if (stride == 1) {
    for (int64_t i = 0; i < count; i += 16)
      _mm512_mask_storeu_ps(to + i, first(count - i), _mm512_maskz_loadu_ps(first(count - i), from + i));
    return;
  }
  if (stride == 2) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    for (int64_t i = 0; i < count; i += 16) {
      const int64_t there = 2 * (count - i) - 1;  // elements up to the last
      const __m512 low = _mm512_maskz_loadu_ps(first(there), from + 2 * i),
                   high = there > 16 ? _mm512_maskz_loadu_ps(first(there - 16), from + 2 * i + 16) : low;
      _mm512_mask_storeu_ps(to + i, first(count - i), _mm512_permutex2var_ps(low, even, high));
    }
    return;
  }
#endif
  if (stride == 1)
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  else
    for (int64_t i = 0; i < count; i++) to[i] = from[stride * i];
}

}  // namespace gopt_runtime
