// What tiles of rows are read from: rows of a source, copied with their border, or where they lie.
#include <algorithm>
#include <cstring>

#include "gopt_terms.h"
#include "gopt_tiles.h"

namespace gopt_runtime {

constexpr int64_t kSegment = 64;  // positions

// 32 channels of each of these positions. Returns the largest magnitude, as SplitRow does.
uint32_t TileConvolution::copy_terms(const void* from, const Step& step, uint16_t* to, int64_t positions, int64_t block,
                                     bool all) const {
  const int channels = static_cast<int>(std::min<int64_t>(s_.in - block * kTileDepth, kTileDepth));
  if (src_.element == Element::BFloat16) {
    const auto* numbers = static_cast<const uint16_t*>(from);
    copy_halves({numbers, step.position, step.channel, step.half, positions, channels, to, line(all)});
    return 0;
  }
  const TermRow row{
      static_cast<const float*>(from), step.position, step.channel, step.half, positions, channels, to, line(all)};
  if (!all) return split_function(terms_)(row);
  split_all(terms_, row);
  return 0;
}

// `row`: of the image. What windows of these positions read, with the border, one channel beside the other.
template <class T>
uint32_t TileConvolution::copy_folded(const T* row, const Range& positions, const Range& blocks, uint16_t* lines,
                                      bool all) const {
  const int64_t channels = given_.in, step = given_.strides[2];
  const int64_t block_size = phase_count() * phase_lines() * line(all);
  T window[((kSegment - 1) * 4 + 16) * kFewestTileChannels + kTileDepth] = {};
  uint32_t largest = 0;
  for (int64_t first = positions.first; first < positions.last; first += kSegment) {
    const int64_t count = std::min(kSegment, positions.last - first), begin = first * step - given_.pads[2];
    const int64_t width = (count - 1) * step + folded_;
    const int64_t from = std::clamp<int64_t>(-begin, 0, width);
    const int64_t until = std::clamp<int64_t>(given_.src[2] - begin, from, width);
    std::fill(window, window + from * channels, T{0});
    std::fill(window + until * channels, window + width * channels, T{0});
    const T* own = row + (begin + from) * src_.position;
    if (src_.channel == 1 && src_.position == channels)
      std::copy(own, own + (until - from) * channels, window + from * channels);
    else
      for (int64_t c = 0; c < channels; c++)
        for (int64_t i = from; i < until; i++)
          window[i * channels + c] = own[(i - from) * src_.position + c * src_.channel];
    for (int64_t block = blocks.first; block < blocks.last; block++) {
      uint16_t* to = lines + (block - blocks.first) * block_size + (first - positions.first) * line(all);
      largest = std::max(
          largest, copy_terms(window + block * kTileDepth, {step * channels, 1, kTileColumns}, to, count, block, all));
    }
  }
  return largest;
}

// These positions of a row of them, of these blocks of channels; `lines` is where the first goes.
uint32_t TileConvolution::copy_row(const void* src, int64_t phase, int64_t row, const Range& positions,
                                   const Range& blocks, uint16_t* lines, bool all) const {
  const int64_t line_size = line(all), block_size = phase_count() * phase_lines() * line_size;
  const int64_t y = row % extents_[1], z = row / extents_[1] % extents_[0], image = row / extents_[1] / extents_[0];
  const int64_t* of = &phases_[static_cast<size_t>(phase * 3)];
  const int64_t at[2] = {z * s_.strides[0] + of[0] - s_.pads[0], y * s_.strides[1] + of[1] - s_.pads[1]};
  const int64_t shift = s_.pads[2] - of[2], stride = s_.strides[2];
  int64_t from = std::clamp(ceil_div(shift, stride), positions.first, positions.last);
  int64_t until = std::clamp(ceil_div(s_.src[2] + shift, stride), from, positions.last);
  if (at[0] < 0 || at[0] >= s_.src[0] || at[1] < 0 || at[1] >= s_.src[1]) from = until = positions.last;
  const auto clear = [&](int64_t first, int64_t last) {
    for (int64_t block = 0; first < last && block < blocks.last - blocks.first; block++)
      std::memset(lines + block * block_size + (first - positions.first) * line_size, 0,
                  static_cast<size_t>((last - first) * line_size) * sizeof *lines);
  };
  clear(positions.first, from);
  clear(until, positions.last);
  uint32_t largest = 0;
  if (folded_ > 1 && from < until) {
    const int64_t place = image * src_.image + (at[0] * given_.src[1] + at[1]) * given_.src[2] * src_.position;
    const void* start = at_element(src, src_.element, place);
    if (src_.element == Element::Float)
      return copy_folded(static_cast<const float*>(start), positions, blocks, lines, all);
    return copy_folded(static_cast<const uint16_t*>(start), positions, blocks, lines, all);
  }
  for (; from < until; from += kSegment) {
    const int64_t source = (at[0] * s_.src[1] + at[1]) * s_.src[2] + from * stride - shift;
    for (int64_t block = blocks.first; block < blocks.last; block++) {
      const int64_t place = image * src_.image + source * src_.position + 2 * block * src_.block;
      uint16_t* to = lines + (block - blocks.first) * block_size + (from - positions.first) * line_size;
      const Step step{src_.position * stride, src_.channel, src_.block};
      largest = std::max(largest, copy_terms(at_element(src, src_.element, place), step, to,
                                             std::min(kSegment, until - from), block, all));
    }
  }
  return largest;
}

// What these rows of tiles read, of these blocks of channels.
uint32_t TileConvolution::copy(const void* src, const Range& rows, const Range& blocks, uint16_t* lines,
                               bool all) const {
  const int64_t count = phase_lines(), first = rows.first * kTileRows;
  const int64_t last = std::min(rows.last * kTileRows + reach_, size_);
  uint32_t largest = 0;
  for (int64_t phase = 0; phase < phase_count(); phase++)
    for (int64_t position = first; position < last;) {
      const int64_t row = position / extents_[2], start = row * extents_[2];
      const Range own{position - start, std::min(extents_[2], last - start)};
      uint16_t* to = lines + (phase * count + position - first) * line(all);
      largest = std::max(largest, copy_row(src, phase, row, own, blocks, to, all));
      position = start + own.last;
    }
  return largest;
}

// Rows of bfloat16 where they lie; the last tile is copied, for it may end beyond them.
TileConvolution::Lines TileConvolution::lines_of(const Call& call, const Range& rows, const Range& blocks,
                                                 uint16_t* copied) const {
  static constexpr int64_t kHere[1] = {0};
  if (is_read_in_place_ && rows.last * kTileRows <= size_) {
    const int64_t at = rows.first * kTileRows * src_.position + blocks.first * kTileDepth;
    return {static_cast<const uint16_t*>(call.src) + at,
            src_.position,
            kTileDepth,
            rows.first,
            blocks.first,
            kHere,
            false,
            false};
  }
  const bool has_again = copy(call.src, rows, blocks, copied, false) >= kRoundsToInfinity;
  if (has_again) copy(call.src, rows, blocks, copied, true);
  const int64_t block = phase_count() * phase_lines() * line(has_again);
  const bool is_by_numbers = s_.groups > 1 && (has_again || has_infinite_halves(copied, rows, blocks));
  return {copied, line(has_again), block, rows.first, blocks.first, tap_lines_.data(), has_again, is_by_numbers};
}

// Of what was copied: rows of bfloat16, of which no split says it.
bool TileConvolution::has_infinite_halves(const uint16_t* copied, const Range& rows, const Range& blocks) const {
  if (src_.element != Element::BFloat16) return false;
  constexpr uint16_t kHalfExponent = kExponent >> 16;
  const int64_t written = std::min(rows.last * kTileRows + reach_, size_) - rows.first * kTileRows;
  int found = 0;
  for (int64_t part = 0; part < (blocks.last - blocks.first) * phase_count(); part++) {
    const uint16_t* own = copied + part * phase_lines() * kTileDepth;
#pragma omp simd reduction(| : found)
    for (int64_t i = 0; i < written * kTileDepth; i++) found |= (own[i] & kHalfExponent) == kHalfExponent;
  }
  return found != 0;
}

}  // namespace gopt_runtime
