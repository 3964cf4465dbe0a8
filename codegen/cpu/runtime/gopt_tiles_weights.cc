// Weights as tiles read them: checked, split into terms, packed.
#include <algorithm>

#include "gopt_team.h"
#include "gopt_terms.h"
#include "gopt_tiles.h"

namespace gopt_runtime {
namespace {

// Of numbers that lie one after another.
uint32_t largest_magnitude(const void* data, Element element, int64_t count, int threads) {
  uint32_t largest = 0;
  if (element == Element::Float) {
    const auto* numbers = static_cast<const float*>(data);
#pragma omp parallel for simd schedule(static) num_threads(threads) reduction(max : largest)
    for (int64_t i = 0; i < count; i++) largest = std::max(largest, bits_of(numbers[i]) & kMagnitude);
  } else {
    const auto* halves = static_cast<const uint16_t*>(data);
#pragma omp parallel for simd schedule(static) num_threads(threads) reduction(max : largest)
    for (int64_t i = 0; i < count; i++)
      largest = std::max(largest, static_cast<uint32_t>(halves[i]) << 16 & kMagnitude);
  }
  return largest;
}

// A line of a tile for each term: of 16 columns the weights of two channels.
template <int terms>
void put_line(const float* first, const float* second, uint16_t* line, int64_t term) {
  uint32_t words[terms][kTileColumns];
#pragma omp simd
  for (int c = 0; c < kTileColumns; c++) {
    uint16_t a[terms], b[terms];
    split_terms(first[c], a);
    split_terms(second[c], b);
    for (int t = 0; t < terms; t++) words[t][c] = a[t] | static_cast<uint32_t>(b[t]) << 16;
  }
  for (int t = 0; t < terms; t++) std::memcpy(line + t * term, words[t], sizeof words[t]);
}

}  // namespace

bool TileConvolution::takes(const TileWeights& w) const {
  const uint32_t limit = terms_ == 1 && w.element == Element::BFloat16 ? UINT32_MAX : kRoundsToInfinity;
  const int64_t in = s_.in / s_.groups / folded_, taps = tap_count() * folded_, count = s_.out * in * taps;
  const bool is_dense = (s_.out - 1) * w.out + (in - 1) * w.in + (taps - 1) * w.tap == count - 1;
  if (is_dense) return largest_magnitude(w.data, w.element, count, threads_) < limit;
  uint32_t largest = 0;
  for (int64_t o = 0; o < s_.out; o++)
    for (int64_t i = 0; i < in; i++)
      for (int64_t tap = 0; tap < taps; tap++)
        largest =
            std::max(largest, bits_of(value_at(w.data, w.element, o * w.out + i * w.in + tap * w.tap)) & kMagnitude);
  return largest < limit;
}

size_t TileConvolution::packed_bytes() const {
  return static_cast<size_t>(columns_ * own_blocks_ * terms_ * kTileElements * tap_count()) * sizeof(uint16_t);
}

// 32 channels of a pair of columns, for one tap, as floats; zeros where there are none. The inner loop is along what
// lies side by side.
void TileConvolution::gather_weights(const TileWeights& w, int64_t column, int64_t block, int64_t tap,
                                     float (&values)[kTileDepth][2 * kTileColumns]) const {
  const int64_t first = column * kTileColumns, results = std::min<int64_t>(s_.out - first, 2 * kTileColumns);
  std::fill_n(&values[0][0], kTileDepth * 2 * kTileColumns, 0.0f);
  if (s_.groups == 1 && folded_ == 1) {
    const int64_t channels = std::min<int64_t>(s_.in - block * kTileDepth, kTileDepth);
    const int64_t start = first * w.out + block * kTileDepth * w.in + tap * w.tap;
    if (w.out == 1)
      for (int64_t c = 0; c < channels; c++)
        for (int64_t o = 0; o < results; o++) values[c][o] = value_at(w.data, w.element, start + c * w.in + o);
    else
      for (int64_t o = 0; o < results; o++)
        for (int64_t c = 0; c < channels; c++) values[c][o] = value_at(w.data, w.element, start + c * w.in + o * w.out);
    return;
  }
  const int64_t in = s_.in / s_.groups, out = s_.out / s_.groups;
  for (int64_t o = 0; o < results; o++) {
    const int64_t before = (first_block(column) + block) * kTileDepth - (first + o) / out * in;
    for (int64_t c = std::max<int64_t>(0, -before); c < kTileDepth && before + c < in; c++)
      values[c][o] = value_at(w.data, w.element, (first + o) * w.out + weight_offset(w, before + c, tap));
  }
}

// Pairs of columns, blocks of channels, taps, terms, columns; in a tile pairs of channels.
template <int terms>
void TileConvolution::pack_pair(const TileWeights& w, int64_t column, uint16_t* to) const {
  float values[kTileDepth][2 * kTileColumns];
  int channel_at[kTileDepth];
  for (int c = 0; c < kTileDepth; c++) channel_at[place_in_line(c, terms)] = c;
  const int64_t columns = columns_at(column), term = columns * kTileElements;
  for (int64_t block = 0; block < own_blocks_; block++)
    for (int64_t tap = 0; tap < tap_count(); tap++, to += terms * term) {
      gather_weights(w, column, block, tap, values);
      for (int line = 0; line < kTileDepth / 2; line++)
        for (int64_t c = 0; c < columns; c++)
          put_line<terms>(values[channel_at[2 * line]] + c * kTileColumns,
                          values[channel_at[2 * line + 1]] + c * kTileColumns,
                          to + c * kTileElements + line * kTileDepth, term);
    }
}

void TileConvolution::pack(const TileWeights& w, void* packed) const {
  auto* tiles = static_cast<uint16_t*>(packed);
  const int64_t pairs = ceil_div(columns_, 2);
  share_each(pairs, threads_, [&](int64_t pair, int) {
    uint16_t* to = tiles + pair * packed_pair();
    if (terms_ == 1)
      pack_pair<1>(w, 2 * pair, to);
    else if (terms_ == 2)
      pack_pair<2>(w, 2 * pair, to);
    else
      pack_pair<3>(w, 2 * pair, to);
  });
}

}  // namespace gopt_runtime
