#include "gopt_integer_sums.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gopt_places.h"

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#include <immintrin.h>
#define GOPT_VNNI 1
#elif defined(__AVX2__)
#include <immintrin.h>
#endif

namespace gopt_runtime::integers {
namespace {

// ---- sums of a tile: so many rows by so many vectors of columns ----

#if defined(GOPT_VNNI)
template <int kRows, int kVectors>
void sum_tile(const uint8_t* const* rows, const std::vector<int64_t>& runs, int64_t quads, const int8_t* weights,
              int32_t* sums) {
  __m512i s[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v++) s[r][v] = _mm512_setzero_si512();
  constexpr int64_t kStep = kVectors * 64;
  for (const int64_t run : runs) {
    const auto add = [&](int64_t q) {
      __m512i w[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; v++) w[v] = _mm512_loadu_si512(weights + q * kStep + v * 64);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; r++) {
        int32_t four;
        std::memcpy(&four, rows[r] + run + 4 * q, sizeof four);
        const __m512i x = _mm512_set1_epi32(four);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; v++) s[r][v] = _mm512_dpbusd_epi32(s[r][v], x, w[v]);
      }
    };
    if constexpr (kRows <= 4)  // weights that few rows pass by
      take_in_places<kStep>(weights, quads, add);
    else
      for (int64_t q = 0; q < quads; q++) add(q);
    weights += quads * kStep;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v++) _mm512_storeu_si512(sums + (r * kVectors + v) * kLanes, s[r][v]);
}
#elif defined(__AVX2__)
// Of at most four rows and 16 columns: bytes in even places and those in odd ones are numbers of 16 bits.
template <int kRows>
void sum_part(const uint8_t* const* rows, const std::vector<int64_t>& runs, int64_t quads, const int8_t* weights,
              int64_t stride, int32_t* sums, int64_t width) {
  __m256i s[kRows][2] = {};
  for (const int64_t run : runs)
    for (int64_t q = 0; q < quads; q++, weights += stride) {
      __m256i even[2], odd[2];
      for (int v = 0; v < 2; v++) {
        const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + v * 32));
        even[v] = _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8);
        odd[v] = _mm256_srai_epi16(w, 8);
      }
#pragma GCC unroll 4
      for (int r = 0; r < kRows; r++) {
        int32_t four;
        std::memcpy(&four, rows[r] + run + 4 * q, sizeof four);
        const __m256i x = _mm256_set1_epi32(four), low = _mm256_and_si256(x, _mm256_set1_epi16(0xff)),
                      high = _mm256_srli_epi16(x, 8);
        for (int v = 0; v < 2; v++)
          s[r][v] = _mm256_add_epi32(
              s[r][v], _mm256_add_epi32(_mm256_madd_epi16(low, even[v]), _mm256_madd_epi16(high, odd[v])));
      }
    }
  for (int r = 0; r < kRows; r++)
    for (int v = 0; v < 2; v++) _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + r * width + v * 8), s[r][v]);
}

template <int kRows, int kVectors>
void sum_tile(const uint8_t* const* rows, const std::vector<int64_t>& runs, int64_t quads, const int8_t* weights,
              int32_t* sums) {
  constexpr int64_t kWidth = kVectors * kLanes;
  constexpr int kTogether = kRows < 4 ? kRows : 4, kLeft = kRows % kTogether;
  for (int v = 0; v < kVectors; v++) {
    int r = 0;
    for (; r + kTogether <= kRows; r += kTogether)
      sum_part<kTogether>(rows + r, runs, quads, weights + v * 64, 4 * kWidth, sums + r * kWidth + v * kLanes, kWidth);
    if constexpr (kLeft > 0)
      sum_part<kLeft>(rows + r, runs, quads, weights + v * 64, 4 * kWidth, sums + r * kWidth + v * kLanes, kWidth);
  }
}
#else
template <int kRows, int kVectors>
void sum_tile(const uint8_t* const* rows, const std::vector<int64_t>& runs, int64_t quads, const int8_t* weights,
              int32_t* sums) {
  constexpr int64_t kWidth = kVectors * kLanes;
  std::fill_n(sums, kRows * kWidth, 0);
  for (const int64_t run : runs)
    for (int64_t q = 0; q < quads; q++, weights += 4 * kWidth)
      for (int r = 0; r < kRows; r++) {
        const uint8_t* x = rows[r] + run + 4 * q;
        int32_t* own = sums + r * kWidth;
        for (int64_t c = 0; c < kWidth; c++) {
          const int8_t* w = weights + 4 * c;
          own[c] += x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3];
        }
      }
}
#endif

}  // namespace

// By the vectors of a panel: as many rows as registers hold, and what is left over.
namespace {
constexpr int kTileKinds = 4;
constexpr TileKind kTiles[kMostVectors][kTileKinds] = {
    {{12, sum_tile<12, 1>}, {6, sum_tile<6, 1>}, {3, sum_tile<3, 1>}, {1, sum_tile<1, 1>}},
    {{12, sum_tile<12, 2>}, {6, sum_tile<6, 2>}, {3, sum_tile<3, 2>}, {1, sum_tile<1, 2>}},
    {{8, sum_tile<8, 3>}, {4, sum_tile<4, 3>}, {2, sum_tile<2, 3>}, {1, sum_tile<1, 3>}},
    {{6, sum_tile<6, 4>}, {4, sum_tile<4, 4>}, {2, sum_tile<2, 4>}, {1, sum_tile<1, 4>}}};
}  // namespace

const TileKind* tile_kinds(int64_t vectors) { return kTiles[vectors - 1]; }

// ---- results ----

#if defined(GOPT_VNNI)
namespace {

// A maximum or minimum is its second operand where the first is NaN: what is NaN stays so in floats.
__m512 bounded(__m512 value, __m512 least, __m512 greatest) {
  return _mm512_min_ps(greatest, _mm512_max_ps(least, value));
}

__mmask16 lanes_of(int64_t count) { return static_cast<__mmask16>(count >= kLanes ? 0xffff : (1 << count) - 1); }

__m512 addend_at(const Results& results, int64_t at, __mmask16 lanes) {
  const __m128i bytes = _mm_maskz_loadu_epi8(lanes, static_cast<const int8_t*>(results.addend) + at);
  const __m512i wide =
      results.second.addend_type == IntegerType::UInt8 ? _mm512_cvtepu8_epi32(bytes) : _mm512_cvtepi8_epi32(bytes);
  return _mm512_cvtepi32_ps(_mm512_sub_epi32(wide, _mm512_set1_epi32(results.second.addend_zero)));
}

// Of the first result.
__m512 second_value(__m512 value, __m512 bias, const Results& results, int64_t at, __mmask16 lanes) {
  const IntegerSecond& second = results.second;
  const __m512i first = _mm512_add_epi32(_mm512_cvtps_epi32(value), _mm512_set1_epi32(second.shift));
  __m512 sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(first), _mm512_set1_ps(second.scale), bias);
  if (results.addend) sum = _mm512_fmadd_ps(addend_at(results, at, lanes), _mm512_set1_ps(second.addend_scale), sum);
  return bounded(sum, _mm512_set1_ps(second.least), _mm512_set1_ps(second.greatest));
}

// As sums, as floats, or rounded: once, or once more.
enum class Stored { Sums, Floats, Rounded, RoundedTwice };

template <Stored kStored>
void store_as(const int32_t* sums, int64_t rows, const Columns& columns, const Results& results,
              const int32_t* row_sums, int64_t at, int64_t stride) {
  const __m512i zero = _mm512_set1_epi32(kStored == Stored::RoundedTwice ? results.second.zero : results.first.zero);
  const __m512 least = _mm512_set1_ps(results.first.least), greatest = _mm512_set1_ps(results.first.greatest);
  for (int64_t c = 0; c < columns.width; c += kLanes) {
    const __mmask16 lanes = lanes_of(columns.count - c);
    const __m512i corrections = _mm512_loadu_si512(columns.corrections + c),
                  zeros = _mm512_loadu_si512(columns.zeros + c);
    const __m512 scale = _mm512_loadu_ps(columns.scale + c), bias = _mm512_loadu_ps(columns.bias + c),
                 second_bias = _mm512_loadu_ps(columns.second_bias + c);
    for (int64_t r = 0; r < rows; r++) {
      __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(sums + r * columns.width + c), corrections);
      if (row_sums) sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(zeros, _mm512_set1_epi32(row_sums[r])));
      const int64_t place = at + r * stride + c;
      if constexpr (kStored == Stored::Sums) {
        _mm512_mask_storeu_epi32(static_cast<int32_t*>(results.dst) + place, lanes, sum);
        continue;
      }
      __m512 value = bounded(_mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, bias), least, greatest);
      if constexpr (kStored == Stored::Floats) {
        _mm512_mask_storeu_ps(static_cast<float*>(results.dst) + place, lanes, value);
        continue;
      }
      if constexpr (kStored == Stored::RoundedTwice) value = second_value(value, second_bias, results, place, lanes);
      const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(value), zero));
      if (lanes == 0xffff)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(static_cast<int8_t*>(results.dst) + place), bytes);
      else
        _mm_mask_storeu_epi8(static_cast<int8_t*>(results.dst) + place, lanes, bytes);
    }
  }
}

}  // namespace

void store_rows(const int32_t* sums, int64_t rows, const Columns& columns, const Results& results,
                const int32_t* row_sums, int64_t at, int64_t stride) {
  const auto store = results.first.type == IntegerType::Int32   ? store_as<Stored::Sums>
                     : results.first.type == IntegerType::Float ? store_as<Stored::Floats>
                     : results.second.is_there                  ? store_as<Stored::RoundedTwice>
                                                                : store_as<Stored::Rounded>;
  store(sums, rows, columns, results, row_sums, at, stride);
}
#else
namespace {

float bounded(float value, float least, float greatest) {  // NaN stays
  const float raised = value < least ? least : value;
  return raised > greatest ? greatest : raised;
}

// Of the first results.
void make_second(float* values, const Columns& columns, const Results& results, int64_t at) {
  const IntegerSecond& second = results.second;
  const auto* addend = static_cast<const uint8_t*>(results.addend);
  const bool is_unsigned = second.addend_type == IntegerType::UInt8;
  for (int64_t c = 0; c < columns.count; c++) {
    const int32_t first = static_cast<int32_t>(std::nearbyint(values[c])) + second.shift;
    float sum = static_cast<float>(first) * second.scale + columns.second_bias[c];
    if (addend) {
      const int32_t own = is_unsigned ? addend[at + c] : static_cast<int8_t>(addend[at + c]);
      sum += static_cast<float>(own - second.addend_zero) * second.addend_scale;
    }
    values[c] = bounded(sum, second.least, second.greatest);
  }
}

}  // namespace

void store_rows(const int32_t* sums, int64_t rows, const Columns& columns, const Results& results,
                const int32_t* row_sums, int64_t at, int64_t stride) {
  const int32_t zero = results.second.is_there ? results.second.zero : results.first.zero;
  const float least = results.first.least, greatest = results.first.greatest;
  for (int64_t r = 0; r < rows; r++, sums += columns.width, at += stride) {
    float values[kPanel];
    uint8_t bits[kPanel];  // of either type
    const int32_t row_sum = row_sums ? row_sums[r] : 0;
    const auto sum_of = [&](int64_t c) { return sums[c] + columns.corrections[c] - columns.zeros[c] * row_sum; };
    if (results.first.type == IntegerType::Int32) {
      for (int64_t c = 0; c < columns.count; c++) static_cast<int32_t*>(results.dst)[at + c] = sum_of(c);
      continue;
    }
#pragma omp simd
    for (int64_t c = 0; c < columns.width; c++)
      values[c] = bounded(static_cast<float>(sum_of(c)) * columns.scale[c] + columns.bias[c], least, greatest);
    if (results.first.type == IntegerType::Float) {
      std::copy_n(values, columns.count, static_cast<float*>(results.dst) + at);
      continue;
    }
    if (results.second.is_there) make_second(values, columns, results, at);
#pragma omp simd
    for (int64_t c = 0; c < columns.width; c++)
      bits[c] = static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(values[c])) + zero);
    std::copy_n(bits, columns.count, static_cast<uint8_t*>(results.dst) + at);
  }
}
#endif

// ---- depthwise: products of each channel's own image ----

#if defined(GOPT_VNNI)
void sum_channels(const uint8_t* const* rows, const std::vector<int64_t>& runs, int64_t channel, int64_t count,
                  const int32_t* weights, int64_t stride, int32_t* sums) {
  const __mmask16 lanes = lanes_of(count);
  __m512i s[kTogether];
#pragma GCC unroll 4
  for (int p = 0; p < kTogether; p++) s[p] = _mm512_setzero_si512();
  for (const int64_t run : runs) {
    const __m512i w = _mm512_loadu_si512(weights);
    weights += stride;
#pragma GCC unroll 4
    for (int p = 0; p < kTogether; p++) {
      const uint8_t* at = rows[p] + run + channel;
      const __m128i bytes =
          lanes == 0xffff ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)) : _mm_maskz_loadu_epi8(lanes, at);
      s[p] = _mm512_dpwssd_epi32(s[p], _mm512_cvtepu8_epi32(bytes), w);
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < kTogether; p++) _mm512_storeu_si512(sums + p * kLanes, s[p]);
}
#else
void sum_channels(const uint8_t* const* rows, const std::vector<int64_t>& runs, int64_t channel, int64_t count,
                  const int32_t* weights, int64_t stride, int32_t* sums) {
  std::fill_n(sums, kTogether * kLanes, 0);
  for (const int64_t run : runs) {
    for (int64_t p = 0; p < kTogether; p++)
      for (int64_t c = 0; c < std::min(count, kLanes); c++)
        sums[p * kLanes + c] += rows[p][run + channel + c] * static_cast<int16_t>(weights[c]);
    weights += stride;
  }
}
#endif

}  // namespace gopt_runtime::integers
