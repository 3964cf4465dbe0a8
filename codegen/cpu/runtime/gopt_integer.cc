#include "gopt_integer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
#include <immintrin.h>
#define GOPT_VNNI 1
#endif

namespace gopt_runtime {

struct IntegerProduct::Columns {
  const int32_t *corrections, *zeros;
  const float *scale, *bias;
  int64_t width, count;
};

namespace {

using Columns = IntegerProduct::Columns;

constexpr int64_t kLanes = 16;       // sums of a vector
constexpr int64_t kMostVectors = 4;  // of a panel of columns
constexpr int64_t kPanel = kMostVectors * kLanes;
constexpr int64_t kBlockRows = 96;  // that are computed with one panel: a multiple of the rows of every tile
constexpr int64_t kMostRows = 12, kMostSums = 24 * kLanes;  // of a tile
constexpr uint8_t kFlip = 128;                              // between signed and unsigned: the same number, 128 away

int64_t rounded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
size_t lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

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
  for (const int64_t run : runs) {
    const uint8_t* at[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; r++) at[r] = rows[r] + run;
    for (int64_t q = 0; q < quads; q++, weights += kVectors * 64) {
      __m512i w[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; v++) w[v] = _mm512_loadu_si512(weights + v * 64);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; r++) {
        int32_t four;
        std::memcpy(&four, at[r] + 4 * q, sizeof four);
        const __m512i x = _mm512_set1_epi32(four);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; v++) s[r][v] = _mm512_dpbusd_epi32(s[r][v], x, w[v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v++) _mm512_storeu_si512(sums + (r * kVectors + v) * kLanes, s[r][v]);
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

using SumTile = void (*)(const uint8_t* const*, const std::vector<int64_t>&, int64_t, const int8_t*, int32_t*);
struct TileKind {
  int64_t rows;
  SumTile sum;
};
constexpr int kTileKinds = 4;
// By the vectors of a panel: as many rows as registers hold, and what is left over.
constexpr TileKind kTiles[kMostVectors][kTileKinds] = {
    {{12, sum_tile<12, 1>}, {6, sum_tile<6, 1>}, {3, sum_tile<3, 1>}, {1, sum_tile<1, 1>}},
    {{12, sum_tile<12, 2>}, {6, sum_tile<6, 2>}, {3, sum_tile<3, 2>}, {1, sum_tile<1, 2>}},
    {{8, sum_tile<8, 3>}, {4, sum_tile<4, 3>}, {2, sum_tile<2, 3>}, {1, sum_tile<1, 3>}},
    {{6, sum_tile<6, 4>}, {4, sum_tile<4, 4>}, {2, sum_tile<2, 4>}, {1, sum_tile<1, 4>}}};

// ---- results of one position: `width` sums, of which `count` are stored ----

#if defined(GOPT_VNNI)
__m512i corrected(const int32_t* sums, const Columns& columns, int64_t c, const int32_t* row_sum) {
  const __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(sums + c), _mm512_loadu_si512(columns.corrections + c));
  if (!row_sum) return sum;
  return _mm512_sub_epi32(sum, _mm512_mullo_epi32(_mm512_loadu_si512(columns.zeros + c), _mm512_set1_epi32(*row_sum)));
}

// A maximum or minimum is of its second operand where the first is NaN: what is NaN stays so in floats.
__m512 bounded(__m512i sum, const Columns& columns, int64_t c, const IntegerResult& result) {
  const __m512 scaled =
      _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(columns.scale + c), _mm512_loadu_ps(columns.bias + c));
  return _mm512_min_ps(_mm512_set1_ps(result.greatest), _mm512_max_ps(_mm512_set1_ps(result.least), scaled));
}

__mmask16 lanes_of(int64_t count) { return static_cast<__mmask16>(count >= kLanes ? 0xffff : (1 << count) - 1); }

void store_row(const int32_t* sums, const Columns& columns, const IntegerResult& result, const int32_t* row_sum,
               void* dst, int64_t at) {
  const __m512i zero = _mm512_set1_epi32(result.zero);
  for (int64_t c = 0; c < columns.width; c += kLanes) {
    const __m512 value = bounded(corrected(sums, columns, c, row_sum), columns, c, result);
    const __mmask16 lanes = lanes_of(columns.count - c);
    if (result.type == IntegerType::Float) {
      _mm512_mask_storeu_ps(static_cast<float*>(dst) + at + c, lanes, value);
      continue;
    }
    const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(value), zero));
    if (lanes == 0xffff)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(static_cast<int8_t*>(dst) + at + c), bytes);
    else
      _mm_mask_storeu_epi8(static_cast<int8_t*>(dst) + at + c, lanes, bytes);
  }
}
#else
void store_row(const int32_t* sums, const Columns& columns, const IntegerResult& result, const int32_t* row_sum,
               void* dst, int64_t at) {
  for (int64_t c = 0; c < columns.count; c++) {
    const int32_t sum = sums[c] + columns.corrections[c] - (row_sum ? columns.zeros[c] * *row_sum : 0);
    const float scaled = static_cast<float>(sum) * columns.scale[c] + columns.bias[c];
    const float value = scaled < result.least ? result.least : scaled > result.greatest ? result.greatest : scaled;
    if (result.type == IntegerType::Float)
      static_cast<float*>(dst)[at + c] = value;
    else  // the bits of either type
      static_cast<uint8_t*>(dst)[at + c] =
          static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(value)) + result.zero);
  }
}
#endif

// ---- depthwise: products of each channel's own image ----

#if defined(GOPT_VNNI)
constexpr int64_t kTogether = 4;  // positions

template <int kPositions>
void sum_channels(const uint8_t* const* rows, const std::vector<int64_t>& runs, int64_t channel, int64_t count,
                  const int32_t* weights, int64_t stride, int32_t* sums) {
  const __mmask16 lanes = lanes_of(count);
  __m512i s[kPositions];
#pragma GCC unroll 4
  for (int p = 0; p < kPositions; p++) s[p] = _mm512_setzero_si512();
  for (const int64_t run : runs) {
    const __m512i w = _mm512_loadu_si512(weights);
    weights += stride;
#pragma GCC unroll 4
    for (int p = 0; p < kPositions; p++) {
      const uint8_t* at = rows[p] + run + channel;
      const __m128i bytes =
          lanes == 0xffff ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)) : _mm_maskz_loadu_epi8(lanes, at);
      s[p] = _mm512_dpwssd_epi32(s[p], _mm512_cvtepu8_epi32(bytes), w);
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < kPositions; p++) _mm512_storeu_si512(sums + p * kLanes, s[p]);
}
#else
constexpr int64_t kTogether = 1;

template <int kPositions>
void sum_channels(const uint8_t* const* rows, const std::vector<int64_t>& runs, int64_t channel, int64_t count,
                  const int32_t* weights, int64_t stride, int32_t* sums) {
  std::fill_n(sums, kLanes, 0);
  for (size_t run = 0; run < runs.size(); run++)
    for (int64_t c = 0; c < std::min(count, kLanes); c++)
      sums[c] +=
          rows[0][runs[run] + channel + c] * static_cast<int16_t>(weights[static_cast<int64_t>(run) * stride + c]);
}
#endif

}  // namespace

IntegerProduct::IntegerProduct(const IntegerShape& shape, IntegerOperands operands, IntegerResult result, int threads)
    : s_(shape), operands_(std::move(operands)), result_(std::move(result)), threads_(threads) {
  for (std::vector<float>* values : {&result_.scale, &result_.bias})
    values->resize(static_cast<size_t>(channels() + kPanel), 0.0f);
  std::vector<int32_t>& zeros = operands_.weight_zeros;
  zeros.resize(static_cast<size_t>(channels() + kPanel), 0);
  if (operands_.weights == IntegerType::UInt8)
    for (int32_t& zero : zeros) zero -= kFlip;
  for (int64_t c = 0; c < channels(); c++) has_weight_zeros_ |= zeros[static_cast<size_t>(c)] != 0;
  if (operands_.src == IntegerType::Int8) operands_.src_zero += kFlip;

  const bool is_joined = s_.groups == 1 && s_.dilations[1] == 1;  // taps of a row lie one after another
  run_bytes_ = is_joined ? s_.kernel[1] * s_.in : s_.in;
  quads_ = (run_bytes_ + 3) / 4;
  copies_ = operands_.src == IntegerType::Int8 || (run_bytes_ % 4 != 0 && !is_depthwise());
  int64_t needed[2];
  for (int d = 0; d < 2; d++) {
    needed[d] = (s_.dst[d] - 1) * s_.strides[d] + (s_.kernel[d] - 1) * s_.dilations[d] + 1;
    copies_ |= s_.pads[d] > 0 || needed[d] > s_.src[d];
  }
  for (int d = 0; d < 2; d++) extent_[d] = copies_ ? needed[d] : s_.src[d];
  const int64_t place = s_.groups * s_.in;
  for (int64_t y = 0; y < s_.kernel[0]; y++)
    for (int64_t x = 0; x < (is_joined ? 1 : s_.kernel[1]); x++)
      runs_.push_back((y * s_.dilations[0] * extent_[1] + x * s_.dilations[1]) * place);
  panels_ = (s_.out + kPanel - 1) / kPanel;
  last_vectors_ = (s_.out - (panels_ - 1) * kPanel + kLanes - 1) / kLanes;
}

// Where what positions read begins, one position after another.
class IntegerProduct::Starts {
 public:
  Starts(const IntegerProduct& product, int64_t position)
      : columns_(product.s_.dst[1]),
        x_(position % columns_),
        step_(product.s_.strides[1] * product.s_.groups * product.s_.in),
        row_(product.s_.strides[0] * product.extent_[1] * product.s_.groups * product.s_.in),
        line_(position / columns_ * row_),
        start_(line_ + x_ * step_) {}
  int64_t next() {
    const int64_t start = start_;
    start_ += step_;
    if (++x_ == columns_) {
      x_ = 0;
      start_ = line_ += row_;
    }
    return start;
  }

 private:
  int64_t columns_, x_, step_, row_, line_, start_;
};

// ---- weights ----

namespace {

// Four weights of each column, which `from` has one after another; none is zero.
void pack_four(const uint8_t* const* from, int64_t stride, uint8_t flip, int64_t count, int8_t* packed, int32_t* sums) {
  if (stride == 1 && from[3]) {
    const uint8_t *a = from[0], *b = from[1], *c = from[2], *d = from[3];
    const uint32_t flips = 0x01010101U * flip;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
      const uint32_t four = (static_cast<uint32_t>(a[i]) | static_cast<uint32_t>(b[i]) << 8 |
                             static_cast<uint32_t>(c[i]) << 16 | static_cast<uint32_t>(d[i]) << 24) ^
                            flips;
      std::memcpy(packed + 4 * i, &four, sizeof four);
      sums[i] += static_cast<int8_t>(four) + static_cast<int8_t>(four >> 8) + static_cast<int8_t>(four >> 16) +
                 static_cast<int8_t>(four >> 24);
    }
    return;
  }
  for (int64_t i = 0; i < count; i++)
    for (int64_t byte = 0; byte < 4; byte++) {
      const auto w = static_cast<int8_t>(from[byte] ? from[byte][i * stride] ^ flip : 0);
      packed[4 * i + byte] = w;
      sums[i] += w;
    }
}

}  // namespace

size_t IntegerProduct::weight_bytes() const {
  const auto runs = static_cast<int64_t>(runs_.size());
  if (is_depthwise()) return static_cast<size_t>(runs * rounded(channels(), kPanel)) * sizeof(int32_t);
  const int64_t columns = (panels_ - 1) * kPanel + last_vectors_ * kLanes;
  return static_cast<size_t>(s_.groups * columns * runs * quads_ * 4);
}
size_t IntegerProduct::packed_bytes() const {
  return lines(weight_bytes()) + static_cast<size_t>(channels() + kPanel) * sizeof(int32_t);
}

int64_t IntegerProduct::packed_form() const {
  uint64_t form = 1469598103934665603ULL;
  const auto add = [&](int64_t number) { form = (form ^ static_cast<uint64_t>(number)) * 1099511628211ULL; };
  for (const int64_t number : {s_.groups, s_.in, s_.out, s_.kernel[0], s_.kernel[1], run_bytes_,
                               static_cast<int64_t>(operands_.weights), static_cast<int64_t>(runs_.size())})
    add(number);
  if (is_depthwise())
    for (const int32_t zero : operands_.weight_zeros) add(zero);
  return static_cast<int64_t>(form >> 1);
}

void IntegerProduct::pack_panel(const uint8_t* weights, const WeightStrides& strides, int64_t group, int64_t panel,
                                int8_t* packed, int32_t* sums) const {
  const int64_t width = (panel + 1 < panels_ ? kMostVectors : last_vectors_) * kLanes;
  const int64_t count = std::min(width, s_.out - panel * kPanel);
  const uint8_t flip = operands_.weights == IntegerType::UInt8 ? kFlip : 0;
  const int64_t taps_of_run = run_bytes_ / s_.in;
  const uint8_t* first = weights + (group * s_.out + panel * kPanel) * strides.out;
  if (count < width) std::memset(packed, 0, static_cast<size_t>(width * 4 * quads_) * runs_.size());
  for (int64_t run = 0; run < static_cast<int64_t>(runs_.size()); run++)
    for (int64_t quad = 0; quad < quads_; quad++, packed += 4 * width) {
      const uint8_t* from[4] = {};
      for (int64_t byte = 4 * quad; byte < std::min(4 * quad + 4, run_bytes_); byte++)
        from[byte % 4] = first + (run * taps_of_run + byte / s_.in) * strides.tap + byte % s_.in * strides.in;
      pack_four(from, strides.out, flip, count, packed, sums);
    }
}

// Sixteen bits of each weight less its zero point, in a number of 32.
void IntegerProduct::pack_depthwise(const uint8_t* weights, const WeightStrides& strides, int32_t* packed,
                                    int32_t* sums) const {
  const int64_t width = rounded(channels(), kPanel);
  const uint8_t flip = operands_.weights == IntegerType::UInt8 ? kFlip : 0;
  std::fill_n(packed, static_cast<int64_t>(runs_.size()) * width, 0);
  for (int64_t tap = 0; tap < static_cast<int64_t>(runs_.size()); tap++)
    for (int64_t c = 0; c < channels(); c++) {
      const auto stored = static_cast<int8_t>(weights[c * strides.out + tap * strides.tap] ^ flip);
      const int32_t w = stored - operands_.weight_zeros[static_cast<size_t>(c)];
      packed[tap * width + c] = w & 0xffff;
      sums[c] += w;
    }
}

void IntegerProduct::pack(const void* weights, const WeightStrides& strides, void* packed) const {
  auto* to = static_cast<int8_t*>(packed);
  auto* sums = reinterpret_cast<int32_t*>(to + lines(weight_bytes()));
  std::fill_n(sums, channels(), 0);
  const auto* from = static_cast<const uint8_t*>(weights);
  if (is_depthwise()) return pack_depthwise(from, strides, static_cast<int32_t*>(packed), sums);
  for (int64_t group = 0; group < s_.groups; group++)
    for (int64_t panel = 0; panel < panels_; panel++) {
      pack_panel(from, strides, group, panel, to, sums + group * s_.out + panel * kPanel);
      const int64_t width = (panel + 1 < panels_ ? kMostVectors : last_vectors_) * kLanes;
      to += width * static_cast<int64_t>(runs_.size()) * quads_ * 4;
    }
}

// ---- images ----

size_t IntegerProduct::image_bytes() const {
  constexpr size_t kReadBeyond = 64;
  return copies_ ? lines(static_cast<size_t>(extent_[0] * extent_[1] * s_.groups * s_.in) + kReadBeyond) : 0;
}

size_t IntegerProduct::scratch_bytes() const {
  const int64_t row_sums = has_weight_zeros_ && !is_depthwise() ? s_.groups * positions() : 0;
  return image_bytes() + lines(static_cast<size_t>(channels() + kPanel) * sizeof(int32_t)) +
         lines(static_cast<size_t>(row_sums) * sizeof(int32_t));
}

const uint8_t* IntegerProduct::prepare(const void* src, uint8_t* scratch) const {
  const auto* from = static_cast<const uint8_t*>(src);
  if (!copies_) return from;
  const int64_t place = s_.groups * s_.in, line = extent_[1] * place, before = s_.pads[1] * place;
  const int64_t inner = std::min(s_.src[1] * place, line - before);
  const uint8_t flip = operands_.src == IntegerType::Int8 ? kFlip : 0;
#pragma omp parallel for schedule(static) num_threads(threads_) if (threads_ > 1)
  for (int64_t y = 0; y < extent_[0]; y++) {
    uint8_t* to = scratch + y * line;
    const int64_t source = y - s_.pads[0];
    if (source < 0 || source >= s_.src[0]) {
      std::memset(to, operands_.src_zero, static_cast<size_t>(line));
      continue;
    }
    const uint8_t* own = from + source * s_.src[1] * place;
    std::memset(to, operands_.src_zero, static_cast<size_t>(before));
    for (int64_t i = 0; i < inner; i++) to[before + i] = own[i] ^ flip;
    std::memset(to + before + inner, operands_.src_zero, static_cast<size_t>(line - before - inner));
  }
  return scratch;
}

void IntegerProduct::sum_rows(const uint8_t* image, int32_t* sums) const {
#pragma omp parallel for schedule(static) num_threads(threads_) if (threads_ > 1)
  for (int64_t i = 0; i < s_.groups * positions(); i++) {
    const uint8_t* own = image + Starts(*this, i % positions()).next() + i / positions() * s_.in;
    int32_t sum = 0;
    for (const int64_t run : runs_)
      for (int64_t k = 0; k < run_bytes_; k++) sum += own[run + k];
    sums[i] = sum;
  }
}

// ---- products ----

IntegerProduct::Columns IntegerProduct::columns_from(int64_t channel, int64_t width, int64_t count,
                                                     const int32_t* corrections) const {
  return {corrections + channel,
          operands_.weight_zeros.data() + channel,
          result_.scale.data() + channel,
          result_.bias.data() + channel,
          width,
          count};
}

void IntegerProduct::run_block(const uint8_t* image, const int8_t* packed, const int32_t* corrections,
                               const int32_t* row_sums, int64_t group, int64_t block, int64_t panel, void* dst) const {
  const int64_t vectors = panel + 1 < panels_ ? kMostVectors : last_vectors_;
  const int64_t end = std::min(positions(), (block + 1) * kBlockRows);
  const int64_t channel = group * s_.out + panel * kPanel;
  const Columns columns =
      columns_from(channel, vectors * kLanes, std::min(kPanel, s_.out - panel * kPanel), corrections);
  const TileKind* kind = kTiles[vectors - 1];
  alignas(64) int32_t sums[kMostSums];
  Starts starts(*this, block * kBlockRows);
  for (int64_t position = block * kBlockRows; position < end; position += kind->rows) {
    while (kind->rows > end - position) kind++;
    const uint8_t* rows[kMostRows];
    for (int64_t r = 0; r < kind->rows; r++) rows[r] = image + starts.next() + group * s_.in;
    kind->sum(rows, runs_, quads_, packed, sums);
    for (int64_t r = 0; r < kind->rows; r++)
      store_row(sums + r * columns.width, columns, result_, row_sums ? row_sums + position + r : nullptr, dst,
                (position + r) * channels() + channel);
  }
}

void IntegerProduct::run_depthwise(const uint8_t* image, const int32_t* packed, const int32_t* corrections,
                                   void* dst) const {
  const int64_t width = rounded(channels(), kPanel);
#pragma omp parallel for schedule(static) num_threads(threads_) if (threads_ > 1)
  for (int64_t first = 0; first < positions(); first += kTogether) {
    const int64_t count = std::min(kTogether, positions() - first);
    const uint8_t* rows[kTogether];
    Starts starts(*this, first);
    for (int64_t p = 0; p < kTogether; p++) rows[p] = p < count ? image + starts.next() : rows[0];
    alignas(64) int32_t sums[kTogether * kLanes];
    for (int64_t channel = 0; channel < channels(); channel += kLanes) {
      const Columns columns = columns_from(channel, kLanes, std::min(kLanes, channels() - channel), corrections);
      sum_channels<kTogether>(rows, runs_, channel, columns.count, packed + channel, width, sums);
      for (int64_t p = 0; p < count; p++)
        store_row(sums + p * kLanes, columns, result_, nullptr, dst, (first + p) * channels() + channel);
    }
  }
}

void IntegerProduct::run(const void* src, const void* packed, void* dst, void* scratch) const {
  auto* own = static_cast<uint8_t*>(scratch);
  const uint8_t* image = prepare(src, own);
  const auto* sums = reinterpret_cast<const int32_t*>(static_cast<const char*>(packed) + lines(weight_bytes()));
  auto* corrections = reinterpret_cast<int32_t*>(own + image_bytes());
  const auto terms = static_cast<int32_t>(static_cast<int64_t>(runs_.size()) * run_bytes_);
  for (int64_t c = 0; c < channels(); c++) {
    const int32_t zero = is_depthwise() ? 0 : operands_.weight_zeros[static_cast<size_t>(c)];
    corrections[c] = operands_.src_zero * (terms * zero - sums[c]);
  }
  std::fill_n(corrections + channels(), kPanel, 0);
  if (is_depthwise()) return run_depthwise(image, static_cast<const int32_t*>(packed), corrections, dst);
  int32_t* row_sums = nullptr;
  if (has_weight_zeros_) {
    row_sums = corrections + lines(static_cast<size_t>(channels() + kPanel) * sizeof(int32_t)) / sizeof(int32_t);
    sum_rows(image, row_sums);
  }
  const int64_t blocks = (positions() + kBlockRows - 1) / kBlockRows;
  const auto depth = static_cast<int64_t>(runs_.size()) * quads_ * 4;
  const int64_t group_bytes = ((panels_ - 1) * kPanel + last_vectors_ * kLanes) * depth;
#pragma omp parallel for schedule(static) num_threads(threads_) if (threads_ > 1)
  for (int64_t item = 0; item < s_.groups * blocks * panels_; item++) {
    const int64_t panel = item % panels_, block = item / panels_ % blocks, group = item / panels_ / blocks;
    run_block(image, static_cast<const int8_t*>(packed) + group * group_bytes + panel * kPanel * depth, corrections,
              row_sums ? row_sums + group * positions() : nullptr, group, block, panel, dst);
  }
}

}  // namespace gopt_runtime
