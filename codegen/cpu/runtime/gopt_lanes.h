// Short rows moved in vectors: parts of them, and elements that lie apart.
#pragma once

#include <cstdint>

#include "gopt_vector.h"

namespace gopt_runtime {

#if defined(__AVX__) && !defined(__AVX512F__)
// All ones in the lanes before `count`, which is not below zero.
inline __m256i first_lanes(int64_t count) {
  static constexpr int32_t kOnes[2 * kLanes] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kOnes + kLanes - (count < kLanes ? count : kLanes)));
}
// By halves: masked stores take some twenty instructions on several processors.
inline void store_fewer(__m256 v, float* to, int64_t count) {
  __m128 part = _mm256_castps256_ps128(v);
  if (count & 4) {
    _mm_storeu_ps(to, part);
    part = _mm256_extractf128_ps(v, 1);
    to += 4;
  }
  if (count & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(to), part);
    part = _mm_movehl_ps(part, part);
    to += 2;
  }
  if (count & 1) _mm_store_ss(to, part);
}
#endif

// As many as whole vectors hold.
inline int64_t in_vectors(int64_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

// Every second of the elements of two vectors, from the first (0) or the one after it (1) on.
template <int first>
inline Vector every_second(Vector a, Vector b) {
#if defined(__AVX512F__)
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_permutex2var_ps(a, _mm512_add_epi32(even, _mm512_set1_epi32(first)), b);
#elif defined(__AVX__)
  return __builtin_shufflevector(a, b, first, first + 2, first + 4, first + 6, first + 8, first + 10, first + 12,
                                 first + 14);
#else
  return __builtin_shufflevector(a, b, first, first + 2, first + 4, first + 6);
#endif
}

// A vector of the elements from number `count` of the first on, which the second one goes on.
template <int count>
inline Vector moved(Vector a, Vector b) {
#if defined(__AVX512F__)
  return _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(b), _mm512_castps_si512(a), count));
#elif defined(__AVX__)
  return __builtin_shufflevector(a, b, count, count + 1, count + 2, count + 3, count + 4, count + 5, count + 6,
                                 count + 7);
#else
  return __builtin_shufflevector(a, b, count, count + 1, count + 2, count + 3);
#endif
}

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
#elif defined(__AVX__)
  const __m256i lanes = first_lanes(count);
  return _mm256_blendv_ps(others, _mm256_maskload_ps(from, lanes), _mm256_castsi256_ps(lanes));
#else
  for (int64_t i = 0; i < count; i++) others[i] = from[i];
  return others;
#endif
}
// Lanes [low, high), 0 <= low <= high <= kLanes, as loads take them.
#if defined(__AVX512F__)
using SomeLanes = __mmask16;
inline SomeLanes lanes_between(int64_t low, int64_t high) { return static_cast<__mmask16>((1u << high) - (1u << low)); }
#elif defined(__AVX__)
using SomeLanes = __m256i;
inline SomeLanes lanes_between(int64_t low, int64_t high) {
  return _mm256_andnot_si256(first_lanes(low), first_lanes(high));
}
#else
struct SomeLanes {
  int64_t low, high;
};
inline SomeLanes lanes_between(int64_t low, int64_t high) { return {low, high}; }
#endif
// Those, `others` in the rest. Nothing else is read.
inline Vector load_some(const float* from, SomeLanes lanes, Vector others) {
#if defined(__AVX512F__)
  return _mm512_mask_loadu_ps(others, lanes, from);
#elif defined(__AVX__)
  return _mm256_blendv_ps(others, _mm256_maskload_ps(from, lanes), _mm256_castsi256_ps(lanes));
#else
  for (int64_t i = lanes.low; i < lanes.high; i++) others[i] = from[i];
  return others;
#endif
}
// Those of a vector, `others` in the rest.
inline Vector lanes_of(Vector v, SomeLanes lanes, Vector others) {
#if defined(__AVX512F__)
  return _mm512_mask_blend_ps(lanes, others, v);
#elif defined(__AVX__)
  return _mm256_blendv_ps(others, v, _mm256_castsi256_ps(lanes));
#else
  for (int64_t i = lanes.low; i < lanes.high; i++) others[i] = v[i];
  return others;
#endif
}
inline void store_first(Vector v, float* to, int64_t count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>(count >= kLanes ? 0xffff : (1u << count) - 1), v);
#elif defined(__AVX__)
  count >= kLanes ? _mm256_storeu_ps(to, v) : store_fewer(v, to, count);
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

#if defined(__AVX512F__)
// Of so many vectors side by side every stride-th element, from number `first` on.
template <int stride, int first>
inline __m512 every_of(const __m512 (&parts)[stride]) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i places =
      _mm512_add_epi32(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(stride)), _mm512_set1_epi32(first));
  if constexpr (stride == 1) return parts[0];
  const __m512 low = _mm512_permutex2var_ps(parts[0], places, parts[stride > 1 ? 1 : 0]);
  if constexpr (stride == 2) return low;
  if constexpr (stride == 4)
    return _mm512_shuffle_f32x4(low, _mm512_permutex2var_ps(parts[stride - 2], places, parts[stride - 1]), 0x44);
  const __m512i beyond = _mm512_sub_epi32(places, _mm512_set1_epi32(16));
  return _mm512_mask_blend_ps(static_cast<__mmask16>(0xffff << (34 - first) / 3), low,
                              _mm512_permutex2var_ps(parts[stride > 1 ? 1 : 0], beyond, parts[stride - 1]));
}
inline __mmask16 first_lanes(int64_t lanes) {
  return static_cast<__mmask16>(lanes >= 16 ? 0xffff : lanes > 0 ? (1u << lanes) - 1 : 0);
}
// At most 16 of them. Two vectors that hold all are read whole, the second one up to the last.
template <int stride>
inline void copy_vector(const float* from, float* to, int64_t count) {
  const int64_t reach = stride * (count - 1) + 1;
  if (stride == 1 && count >= 8) {
    const __m256 low = _mm256_loadu_ps(from), high = _mm256_loadu_ps(from + count - 8);
    _mm256_storeu_ps(to, low);
    return _mm256_storeu_ps(to + count - 8, high);
  }
  if (stride > 1 && reach >= 16 && reach <= 32) {
    const __m512i places = _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                              _mm512_set1_epi32(stride)),
                  moved = _mm512_set1_epi32(static_cast<int32_t>(32 - reach));
    const __m512i both =
        _mm512_mask_add_epi32(places, _mm512_cmpgt_epi32_mask(places, _mm512_set1_epi32(15)), places, moved);
    return _mm512_mask_storeu_ps(
        to, first_lanes(count),
        _mm512_permutex2var_ps(_mm512_loadu_ps(from), both, _mm512_loadu_ps(from + reach - 16)));
  }
  __m512 parts[stride];
  for (int k = 0; k < stride; k++) parts[k] = _mm512_maskz_loadu_ps(first_lanes(reach - 16 * k), from + 16 * k);
  _mm512_mask_storeu_ps(to, first_lanes(count), every_of<stride, 0>(parts));
}
// The last vector begins before it has to, with what lies before it, not beyond: loads of some lanes alone take several
// times as long where they are the first of their page.
template <int stride>
inline void copy_every(const float* from, float* to, int64_t count) {
  if (count <= 16) return copy_vector<stride>(from, to, count);
  __m512 parts[stride];
  const auto load_parts = [&](const float* at) {
    for (int k = 0; k < stride; k++) parts[k] = _mm512_loadu_ps(at + 16 * k);
  };
  for (int64_t i = 0; i + 16 < count; i += 16) {
    load_parts(from + stride * i);
    _mm512_storeu_ps(to + i, every_of<stride, 0>(parts));
  }
  load_parts(from + stride * (count - 16) - (stride - 1));
  _mm512_storeu_ps(to + count - 16, every_of<stride, stride - 1>(parts));
}
#endif

// Every stride-th of the elements from `from`. Rows are short: the ends of vectors are not left to a loop.
inline void copy_row(const float* from, float* to, int64_t count, int64_t stride) {
#if defined(__AVX512F__)
  if (stride == 1) return copy_every<1>(from, to, count);
  if (stride == 2) return copy_every<2>(from, to, count);
  if (stride == 3) return copy_every<3>(from, to, count);
  if (stride == 4) return copy_every<4>(from, to, count);
#endif
  int64_t i = 0;
  if (stride == 1) {
    for (; i + kLanes <= count; i += kLanes) std::memcpy(to + i, from + i, sizeof(Vector));
    if (i < count && count > kLanes)
      std::memcpy(to + count - kLanes, from + count - kLanes, sizeof(Vector));
    else if (i < count)
      store_first(load_lanes(from, count, Vector{}), to, count);
    return;
  }
  if (stride == 2)  // the last vector would read beyond the last element
    for (; i + kLanes < count; i += kLanes) {
      const Vector v = every_second<0>(load(from + 2 * i), load(from + 2 * i + kLanes));
      std::memcpy(to + i, &v, sizeof v);
    }
  if (stride == 4)
    for (; i + kLanes < count; i += kLanes) {
      const float* at = from + 4 * i;
      const Vector v = every_second<0>(every_second<0>(load(at), load(at + kLanes)),
                                       every_second<0>(load(at + 2 * kLanes), load(at + 3 * kLanes)));
      std::memcpy(to + i, &v, sizeof v);
    }
  for (; i < count; i++) to[i] = from[stride * i];
}

}  // namespace gopt_runtime
