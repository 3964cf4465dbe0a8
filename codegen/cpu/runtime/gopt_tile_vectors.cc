#include "gopt_tile_vectors.h"

#include <algorithm>
#include <cstring>

#include "gopt_terms.h"

#if GOPT_HAS_AMX
#include <immintrin.h>
#define GOPT_TERMS_CODE __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#endif

namespace gopt_runtime {
namespace {

#if GOPT_HAS_AMX

// Forms with a mask alone: g++ 12 warns of what others leave undefined.
constexpr __mmask16 kAll = 0xffff;
inline __mmask16 first_of(int channels) { return static_cast<__mmask16>((1u << channels) - 1); }

template <bool gathers>
GOPT_TERMS_CODE inline __m512 load_channels(const float* from, __m512i offsets, __mmask16 mask) {
  return gathers ? _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, offsets, from, 4)
                 : _mm512_maskz_loadu_ps(mask, from);
}

template <int terms, bool gathers>
GOPT_TERMS_CODE uint32_t split_row_vectors(const TermRow& row) {
  const __mmask16 first = first_of(std::min(row.channels, kTileColumns)),
                  second = first_of(std::max(row.channels - kTileColumns, 0));
  const __m512i magnitude = _mm512_set1_epi32(static_cast<int>(kMagnitude)),
                upper = _mm512_set1_epi32(static_cast<int>(kUpper)), half = _mm512_set1_epi32(0x8000);
  alignas(64) int32_t lanes[kTileColumns];
  for (int c = 0; c < kTileColumns; c++) lanes[c] = c * static_cast<int32_t>(row.channel);
  const __m512i offsets = _mm512_load_si512(lanes);
  __m512i largest = _mm512_setzero_si512();
  const float* from = row.from;
  uint16_t* to = row.to;
  for (int64_t i = 0; i < row.positions; i++, from += row.position, to += row.line) {
    __m512 a = load_channels<gathers>(from, offsets, first),
           b = load_channels<gathers>(from + row.half, offsets, second);
    for (const __m512 v : {a, b})
      largest = _mm512_maskz_max_epu32(kAll, largest, _mm512_and_si512(_mm512_castps_si512(v), magnitude));
    if constexpr (terms == 1) {
      const __m512bh both = _mm512_cvtne2ps_pbh(b, a);
      std::memcpy(to, &both, sizeof both);
    } else {
      for (int t = 0; t < terms; t++) {
        const __m512i x = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(a), half), upper);
        const __m512i y = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(b), half), upper);
        _mm512_store_si512(to + t * kTileDepth, _mm512_or_si512(_mm512_maskz_srli_epi32(kAll, x, 16), y));
        a = _mm512_sub_ps(a, _mm512_castsi512_ps(x));
        b = _mm512_sub_ps(b, _mm512_castsi512_ps(y));
      }
    }
  }
  alignas(64) uint32_t each[kTileColumns];
  _mm512_store_si512(each, largest);
  return *std::max_element(each, each + kTileColumns);
}

// One channel beside the other.
GOPT_TERMS_CODE void copy_half_vectors(const ChannelRow<uint16_t>& row) {
  const __mmask16 first = first_of(std::min(row.channels, kTileColumns)),
                  second = first_of(std::max(row.channels - kTileColumns, 0));
  const uint16_t* from = row.from;
  uint16_t* to = row.to;
  for (int64_t i = 0; i < row.positions; i++, from += row.position, to += row.line) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to), _mm256_maskz_loadu_epi16(first, from));
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + kTileColumns),
                       _mm256_maskz_loadu_epi16(second, from + row.half));
  }
}

GOPT_TERMS_CODE inline void put_words(uint16_t* tile, int line, __m512i words) {
  _mm512_store_si512(tile + line * kTileDepth, words);
}
GOPT_TERMS_CODE inline __m512i wide_words(const uint16_t* from) {
  return _mm512_maskz_cvtepu16_epi32(kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

// In four steps: words, pairs of words, and twice lanes of four.
GOPT_TERMS_CODE void turn_over_vectors(const uint16_t* from, int64_t line, uint16_t* tile) {
  constexpr __mmask8 kPairs = 0xff;
  __m512i r[16], t[16];
  for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_si512(from + i * line);
  for (int i = 0; i < 8; i++) {
    t[2 * i] = _mm512_maskz_unpacklo_epi32(kAll, r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_maskz_unpackhi_epi32(kAll, r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 4; i++)
    for (int half = 0; half < 2; half++) {
      r[4 * i + 2 * half] = _mm512_maskz_unpacklo_epi64(kPairs, t[4 * i + half], t[4 * i + half + 2]);
      r[4 * i + 2 * half + 1] = _mm512_maskz_unpackhi_epi64(kPairs, t[4 * i + half], t[4 * i + half + 2]);
    }
  // Lane l of r[4 i + k] is now word 4 l + k of lines 4 i to 4 i + 3.
  for (int k = 0; k < 4; k++) {
    const __m512i even[2] = {_mm512_maskz_shuffle_i32x4(kAll, r[k], r[4 + k], 0x88),
                             _mm512_maskz_shuffle_i32x4(kAll, r[8 + k], r[12 + k], 0x88)};
    const __m512i odd[2] = {_mm512_maskz_shuffle_i32x4(kAll, r[k], r[4 + k], 0xdd),
                            _mm512_maskz_shuffle_i32x4(kAll, r[8 + k], r[12 + k], 0xdd)};
    put_words(tile, k, _mm512_maskz_shuffle_i32x4(kAll, even[0], even[1], 0x88));
    put_words(tile, 4 + k, _mm512_maskz_shuffle_i32x4(kAll, odd[0], odd[1], 0x88));
    put_words(tile, 8 + k, _mm512_maskz_shuffle_i32x4(kAll, even[0], even[1], 0xdd));
    put_words(tile, 12 + k, _mm512_maskz_shuffle_i32x4(kAll, odd[0], odd[1], 0xdd));
  }
}
GOPT_TERMS_CODE void interleave_vectors(const uint16_t* first, const uint16_t* second, uint16_t* words) {
  _mm512_store_si512(words, _mm512_or_si512(wide_words(first), _mm512_maskz_slli_epi32(kAll, wide_words(second), 16)));
}

template <bool is_half>
GOPT_TERMS_CODE inline __m512 load_addend(const void* from, int64_t at, __mmask16 mask) {
  if constexpr (!is_half) return _mm512_maskz_loadu_ps(mask, static_cast<const float*>(from) + at);
  const __m256i bits = _mm256_maskz_loadu_epi16(mask, static_cast<const uint16_t*>(from) + at);
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, _mm512_maskz_cvtepu16_epi32(kAll, bits), 16));
}
template <bool is_half>
GOPT_TERMS_CODE inline void store_channels(void* to, int64_t at, __mmask16 mask, __m512 v) {
  if constexpr (!is_half) return _mm512_mask_storeu_ps(static_cast<float*>(to) + at, mask, v);
  const __m256bh half = _mm512_cvtneps_pbh(v);
  __m256i bits;
  std::memcpy(&bits, &half, sizeof bits);
  _mm256_mask_storeu_epi16(static_cast<uint16_t*>(to) + at, mask, bits);
}

template <bool is_half, int columns>
GOPT_TERMS_CODE void finish_vectors(const TileRows& t) {
  const __m512 least = _mm512_set1_ps(t.least), most = _mm512_set1_ps(t.most);
  __mmask16 own[columns], stored[columns];
  __m512 bias[columns];
  for (int c = 0; c < columns; c++) {
    own[c] = first_of(t.channels[c]);
    stored[c] = t.is_filled ? kAll : own[c];
    bias[c] = t.bias ? _mm512_maskz_loadu_ps(own[c], t.bias + c * kTileColumns) : _mm512_setzero_ps();
  }
  const bool is_joined = columns == 2 && t.column == kTileColumns && stored[0] == kAll && stored[columns - 1] == kAll;
  for (int r = 0; r < t.rows; r++) {
    const int64_t at = t.offsets[r];
    if (at < 0) continue;
    __m512 v[columns];
    for (int c = 0; c < columns; c++) {
      v[c] = _mm512_load_ps(t.sums + (c * kTileRows + r) * kTileColumns);
      if (t.bias) v[c] = _mm512_add_ps(v[c], bias[c]);
      if (t.addend) v[c] = _mm512_add_ps(v[c], load_addend<is_half>(t.addend, at + c * t.column, own[c]));
      // Of these two the second operand is what is given where one is no number.
      v[c] = _mm512_maskz_min_ps(own[c], most, _mm512_maskz_max_ps(kAll, least, v[c]));
    }
    if (!t.dst) {
      for (int c = 0; c < columns; c++) _mm512_store_ps(t.sums + (c * kTileRows + r) * kTileColumns, v[c]);
      continue;
    }
    if constexpr (is_half && columns == 2)
      if (is_joined) {
        const __m512bh both = _mm512_cvtne2ps_pbh(v[1], v[0]);
        std::memcpy(static_cast<uint16_t*>(t.dst) + at, &both, sizeof both);
        continue;
      }
    for (int c = 0; c < columns; c++) store_channels<is_half>(t.dst, at + c * t.column, stored[c], v[c]);
  }
}
template <bool is_half>
void finish_tiles(const TileRows& t) {
  t.columns == 2 ? finish_vectors<is_half, 2>(t) : finish_vectors<is_half, 1>(t);
}

template <int terms>
uint32_t split_row_fast(const TermRow& row) {
  return row.channel == 1 ? split_row_vectors<terms, false>(row) : split_row_vectors<terms, true>(row);
}

#endif

// Any numbers, one by one.
template <int terms>
uint32_t split_row(const TermRow& row, bool has_again) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < row.positions; i++)
    for (int c = 0; c < kTileDepth; c++) {
      const float value = c < row.channels ? row.from[row.place(i, c)] : 0.0f;
      uint16_t split[terms];
      split_terms<terms>(value, split);
      uint16_t* to = row.to + i * row.line + place_in_line(c, terms);
      for (int t = 0; t < terms; t++) to[t * kTileDepth] = split[t];
      const uint32_t bits = bits_of(value) & kMagnitude;
      if (has_again) to[terms * kTileDepth] = bits < kExponent ? split[0] : uint16_t{0};
      largest = std::max(largest, bits);
    }
  return largest;
}

template <int terms>
uint32_t split_row_plainly(const TermRow& row) {
  return split_row<terms>(row, false);
}

}  // namespace

SplitRow split_function(int terms) {
#if GOPT_HAS_AMX
  if (__builtin_cpu_supports("avx512bf16"))
    return terms == 1 ? split_row_fast<1> : terms == 2 ? split_row_fast<2> : split_row_fast<3>;
#endif
  return terms == 1 ? split_row_plainly<1> : terms == 2 ? split_row_plainly<2> : split_row_plainly<3>;
}

void turn_over_words(const uint16_t* from, int64_t line, uint16_t* tile) {
#if GOPT_HAS_AMX
  if (__builtin_cpu_supports("avx512bf16")) return turn_over_vectors(from, line, tile);
#endif
  for (int i = 0; i < kTileRows; i++)
    for (int word = 0; word < kTileDepth / 2; word++)
      std::memcpy(tile + word * kTileDepth + 2 * i, from + i * line + 2 * word, 2 * sizeof *tile);
}
void interleave_lines(const uint16_t* first, const uint16_t* second, uint16_t* words) {
#if GOPT_HAS_AMX
  if (__builtin_cpu_supports("avx512bf16")) return interleave_vectors(first, second, words);
#endif
  for (int i = 0; i < kTileColumns; i++) words[2 * i] = first[i], words[2 * i + 1] = second[i];
}

void copy_halves(const ChannelRow<uint16_t>& row) {
#if GOPT_HAS_AMX
  if (row.channel == 1 && __builtin_cpu_supports("avx512bf16")) return copy_half_vectors(row);
#endif
  for (int64_t i = 0; i < row.positions; i++)
    for (int c = 0; c < kTileDepth; c++)
      row.to[i * row.line + c] = c < row.channels ? row.from[row.place(i, c)] : uint16_t{0};
}

FinishTiles finish_function(bool is_half) {
#if GOPT_HAS_AMX
  if (__builtin_cpu_supports("avx512bf16")) return is_half ? finish_tiles<true> : finish_tiles<false>;
#endif
  (void)is_half;
  return nullptr;
}

void split_all(int terms, const TermRow& row) {
  if (terms == 1)
    split_row<1>(row, false);
  else if (terms == 2)
    split_row<2>(row, true);
  else
    split_row<3>(row, true);
}

}  // namespace gopt_runtime
