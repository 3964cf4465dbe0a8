#include "gopt_tiles.h"

#include <algorithm>
#include <cstring>

#include "gopt_team.h"
#include "gopt_terms.h"

namespace gopt_runtime {
namespace {

constexpr int64_t kLanes = 16, kSums = kTileRows * kTileColumns;
constexpr int64_t kWaitingRows = 8;      // tiles, where sums wait for more channels
constexpr int64_t kNearest = 10;         // blocks of channels
constexpr int64_t kColumnsInPlace = 32;  // tiles: rows that are read more often than that are worth a copy

int64_t product(const int64_t (&extents)[3]) { return extents[0] * extents[1] * extents[2]; }

// A position a row: what lies between is nothing to a 1x1 kernel.
TileShape joined(TileShape s, const TileOrder& src, const TileOrder& dst) {
  bool is_pointwise = product(s.kernel) == 1;
  for (int a = 0; a < 3; a++)
    is_pointwise = is_pointwise && s.strides[a] == 1 && s.pads[a] == 0 && s.src[a] == s.dst[a];
  if (!is_pointwise) return s;
  int64_t count = product(s.src);
  if (src.image == count * src.position && dst.image == count * dst.position) {
    count *= s.batch;
    s.batch = 1;
  }
  for (int64_t(*extents)[3] : {&s.src, &s.dst}) {
    (*extents)[0] = (*extents)[1] = 1;
    (*extents)[2] = count;
  }
  return s;
}

// Taps along the last axis as channels: a position is then what such a window reads, and steps are the copy's.
TileShape folded(TileShape s, int64_t taps) {
  if (taps == 1) return s;
  s.in *= taps;
  s.kernel[2] = s.strides[2] = s.dilations[2] = 1;
  s.pads[2] = 0;
  s.src[2] = s.dst[2];
  return s;
}

}  // namespace

// Of tiles.
struct TileConvolution::Part {
  Range rows, columns;
};

TileConvolution::TileConvolution(const TileShape& shape, const TileOrder& src, const TileOrder& dst, int terms,
                                 std::vector<Post> posts, int threads, TileUnit unit, int64_t near)
    : given_(shape),
      folded_(shape.groups == 1 && folds_window(shape.in, shape.kernel[2], shape.strides[2], shape.dilations[2])
                  ? shape.kernel[2]
                  : 1),
      s_(folded_ > 1 ? folded(shape, folded_) : joined(shape, src, dst)),
      src_(src),
      dst_(dst),
      terms_(terms),
      posts_(std::move(posts)),
      threads_(threads),
      unit_(unit) {
  blocks_ = ceil_div(s_.in, kTileDepth);
  columns_ = ceil_div(s_.out, kTileColumns);
  const int64_t in = s_.in / s_.groups, out = s_.out / s_.groups;
  own_blocks_ = ceil_div(s_.groups > 1 && out < 2 * kTileColumns ? 2 * kTileColumns / out * in : in, kTileDepth);
  // All products of terms round a sum once for each block of channels, arithmetic in floats for each channel.
  constexpr int64_t kChannelsOfRounding = 3;
  is_apart_ = terms_ == kMostTerms && in < kChannelsOfRounding * terms_ * (terms_ + 1) / 2 * own_blocks_;
  describe_axes();
  add_positions();
  divide(near);
}

// Tap k reads phase k * dilation % stride.
void TileConvolution::describe_axes() {
  for (int a = 0; a < 3; a++) extents_[a] = s_.dst[a] + (s_.kernel[a] - 1) * s_.dilations[a] / s_.strides[a];
  size_ = s_.batch * product(extents_);
  int64_t k[3];
  for (k[0] = 0; k[0] < s_.kernel[0]; k[0]++)
    for (k[1] = 0; k[1] < s_.kernel[1]; k[1]++)
      for (k[2] = 0; k[2] < s_.kernel[2]; k[2]++) {
        int64_t phase[3], offset = 0;
        for (int a = 0; a < 3; a++) {
          phase[a] = k[a] * s_.dilations[a] % s_.strides[a];
          offset = offset * extents_[a] + k[a] * s_.dilations[a] / s_.strides[a];
        }
        size_t number = 0;
        while (number < phases_.size() && !std::equal(phase, phase + 3, &phases_[number])) number += 3;
        if (number == phases_.size()) phases_.insert(phases_.end(), phase, phase + 3);
        taps_.push_back({static_cast<int64_t>(number / 3), offset});
        reach_ = std::max(reach_, offset);
      }
}

void TileConvolution::add_positions() {
  int64_t p[3];
  for (int64_t image = 0; image < s_.batch; image++)
    for (p[0] = 0; p[0] < extents_[0]; p[0]++)
      for (p[1] = 0; p[1] < extents_[1]; p[1]++)
        for (p[2] = 0; p[2] < extents_[2]; p[2]++) {
          const bool is_there = p[0] < s_.dst[0] && p[1] < s_.dst[1] && p[2] < s_.dst[2];
          const int64_t position = (p[0] * s_.dst[1] + p[1]) * s_.dst[2] + p[2];
          offsets_.push_back(is_there ? image * dst_.image + position * dst_.position : -1);
        }
  while (offsets_.back() < 0) offsets_.pop_back();
  const auto count = static_cast<int64_t>(offsets_.size());
  rows_ = ceil_div(count, kTileRows);
  tile_rows_ = std::min<int64_t>(count, kTileRows);
  offsets_.resize(static_cast<size_t>(rows_ * kTileRows), -1);
}

// So many rows that their channels stay near while columns pass by; where those are few, sums wait for the next
// channels. What a window reaches beyond its rows is copied once more for the next.
void TileConvolution::divide(int64_t near) {
  const bool is_one_run = product(s_.kernel) == 1 && phase_count() == 1 && s_.batch == 1 &&
                          s_.src[0] * s_.src[1] == 1 && s_.strides[2] == 1 && s_.pads[2] == 0;
  is_read_in_place_ = folded_ == 1 && s_.groups == 1 && terms_ == 1 && src_.element == Element::BFloat16 &&
                      src_.channel == 1 && is_one_run && src_.block == kLanes && s_.in % kTileDepth == 0 &&
                      columns_ <= kColumnsInPlace;
  const int64_t position = phase_count() * line(false) * static_cast<int64_t>(sizeof(uint16_t));
  // To let many weights pass a second time costs more than lines, or sums, that are near only for the most part.
  const bool is_once = static_cast<int64_t>(packed_bytes()) > near;
  const auto fit = [&](int64_t bytes) { return (bytes / (position * blocks_) - reach_) / kTileRows; };
  const int64_t fitting = is_once && fit(near / 5 * 8) >= rows_ ? rows_ : fit(near) / 2 * 2;
  const bool can_wait = !is_apart_ && s_.groups == 1;
  const bool all_wait = is_once && can_wait && rows_ * columns_ * kSums * static_cast<int64_t>(sizeof(float)) <= near;
  const int64_t few = all_wait ? rows_ : std::min(rows_, std::max(kWaitingRows, ceil_div(reach_, kTileRows) * 2));
  most_rows_ = std::min(rows_, std::max(fitting, few));
  most_blocks_ = blocks_;
  if (fitting < few && can_wait) {
    const int64_t most = std::max<int64_t>(1, near / (position * (few * kTileRows + reach_)));
    most_blocks_ = ceil_div(blocks_, ceil_div(blocks_, most));
  }
  // Products of bfloat16 wait for what passes by. With windows and with terms it is used several times.
  nearest_ = terms_ == 1 && tap_count() == 1 && rows_ > 2 && s_.groups == 1 && most_blocks_ > kNearest * 3 / 2
                 ? kNearest
                 : blocks_;
  // Where weights stay near, or pass by once for a pair of rows, the core's own prefetching does as well.
  constexpr int64_t kLine = 64;
  apart_ = rows_ > 2 && is_once ? kLine : 8 * kLine;
  for (const Tap& tap : taps_) tap_lines_.push_back(tap.phase * phase_lines() + tap.offset);
}

// Reads of the last tile go beyond what is copied.
int64_t TileConvolution::own_bytes() const {
  const int64_t lines = phase_count() * phase_lines() * most_blocks_ + kTileRows;
  const int64_t sums = most_rows_ * waiting_columns() * kSums;
  return lines * line(true) * static_cast<int64_t>(sizeof(uint16_t)) + sums * static_cast<int64_t>(sizeof(float));
}
size_t TileConvolution::scratch_bytes() const { return static_cast<size_t>(threads_ * own_bytes()); }

// ---- products ----

// Each thread has a rectangle of tiles, so that little is read, and no thread waits long for another. In cycles.
TileConvolution::Part TileConvolution::part_of(int thread, int threads) const {
  constexpr double kProduct = 16, kSplit = 13, kWeightBytes = 7.5;  // of two tiles; of 32 channels; a cycle
  const int64_t rows = ceil_div(rows_, 2), columns = ceil_div(columns_, 2), steps = own_blocks_ * tap_count();
  const double pair = 4 * kProduct * terms_ * (terms_ + 1) / 2 * static_cast<double>(steps);
  const double weights = 4.0 * kTileElements * terms_ * static_cast<double>(steps) / kWeightBytes;
  const double split = kSplit * static_cast<double>(phase_count() * size_ * blocks_);
  double least = 0;
  int64_t best = 0;
  for (int64_t across = 1; across <= threads; across++) {
    const int64_t down = threads / across;
    const int64_t own_rows = ceil_div(rows, down), own_columns = ceil_div(columns, across);
    const double passes = static_cast<double>(ceil_div(own_rows * 2, most_rows_));
    const double cost =
        std::max(pair * static_cast<double>(own_rows), weights * passes) * static_cast<double>(own_columns) +
        split / static_cast<double>(down);
    if (best == 0 || cost < least) best = across, least = cost;
  }
  const int64_t down = threads / best, i = thread / best, j = thread % best;
  if (i >= down) return {{0, 0}, {0, 0}};
  const auto share = [](int64_t count, int64_t tiles, int64_t part, int64_t parts) {
    return Range{count * part / parts * 2, std::min(tiles, count * (part + 1) / parts * 2)};
  };
  return {share(rows, rows_, i, down), share(columns, columns_, j, best)};
}

void TileConvolution::multiply_plainly(const Call& call, const Lines& lines, int64_t row, int64_t column,
                                       const int64_t (&tiles)[2], float* sums) const {
  const int64_t in = s_.in / s_.groups, out = s_.out / s_.groups, first = first_block(column);
  const auto of_terms = [&](const uint16_t* from, int64_t step) {
    double value = 0;  // of the largest floats the first two terms are beyond them
    for (int64_t t = terms_; t-- > 0;) value += float_of_half(from[t * step]);
    return value;
  };
  for (int64_t r = 0; r < tiles[0] * kTileRows; r++)
    for (int64_t c = 0; c < tiles[1] * kTileColumns; c++) {
      double sum = 0;
      for (int64_t i = 0; i < in; i++)
        for (int64_t tap = 0; tap < tap_count(); tap++) {
          const int64_t channel = (column * kTileColumns + c) / out * in + i, own = channel - first * kTileDepth;
          const int64_t place = place_in_line(static_cast<int>(channel % kTileDepth), terms_);
          const uint16_t* x = lines.data + (channel / kTileDepth - lines.first_block) * lines.block + place +
                              ((row - lines.first) * kTileRows + r + lines.taps[tap]) * lines.line;
          const int64_t tile = (own / kTileDepth * tap_count() + tap) * terms_ * tiles[1] + c / kTileColumns;
          const uint16_t* w = weights_at(call, column, 0) + tile * kTileElements + place / 2 * kTileDepth +
                              c % kTileColumns * 2 + place % 2;
          sum += of_terms(x, kTileDepth) * of_terms(w, tiles[1] * kTileElements);
        }
      const int64_t tile = r / kTileRows * tiles[1] + c / kTileColumns;
      sums[(tile * kTileRows + r % kTileRows) * kTileColumns + c % kTileColumns] = static_cast<float>(sum);
    }
}

void TileConvolution::multiply(const Call& call, const Lines& lines, int64_t row, int64_t column,
                               const int64_t (&tiles)[2], const Range& blocks, const Ahead& ahead, float* sums) const {
  TileProduct p{};
  p.line = lines.line;
  p.row = kTileRows * p.line;
  p.x = lines.data + (row - lines.first) * p.row + (blocks.first - lines.first_block) * lines.block;
  p.block = lines.block;
  p.again = lines.has_again ? terms_ * kTileDepth : 0;
  p.taps = lines.taps;
  p.tap_count = tap_count();
  p.blocks = blocks.last - blocks.first;
  p.w = weights_at(call, column, blocks.first - first_block(column));
  p.sums = sums;
  p.continues = blocks.first > first_block(column);
  // A part for each pair of rows.
  const int64_t coming = terms_ * ahead.columns * kTileElements * static_cast<int64_t>(sizeof(uint16_t)) / apart_;
  const int64_t share = ceil_div(coming, ahead.parts), before = std::min(ahead.part * share, coming);
  p.ahead_lines = std::min(share, coming - before);
  p.ahead_apart = apart_;
  p.ahead = reinterpret_cast<const char*>(ahead.weights) + p.blocks * p.tap_count * before * apart_;
  const auto add = [&](TileTerms which) {
    multiply_function(unit_, terms_, which, static_cast<int>(tiles[0]), static_cast<int>(tiles[1]))(p);
  };
  if (!is_apart_) return add(TileTerms::All);
  add(TileTerms::Lower);
  p.continues = true;
  p.ahead_lines = 0;
  add(TileTerms::First);
}

// Rows that are copied at once. While a pair of columns is multiplied by, each pair of rows asks for a part of the
// next.
void TileConvolution::compute(const Call& call, const Part& part, const Range& rows, char* scratch) const {
  auto* copied = reinterpret_cast<uint16_t*>(scratch);
  const bool waits = most_blocks_ < blocks_, passes = nearest_ < blocks_;
  auto* kept = reinterpret_cast<float*>(scratch + own_bytes()) - most_rows_ * waiting_columns() * kSums;
  const int64_t pairs = ceil_div(rows.last - rows.first, 2);
  for (int64_t block = 0; block < blocks_; block += most_blocks_) {
    const Range blocks{block, std::min(block + most_blocks_, blocks_)};
    const Lines lines = lines_of(call, rows, blocks, copied);
    for (int64_t column = part.columns.first; column < part.columns.last; column += 2) {
      float* waiting = waits ? kept + (column - part.columns.first) * most_rows_ * kSums : kept;
      const bool is_last = column + 2 >= part.columns.last;
      const int64_t next = is_last ? part.columns.first : column + 2,
                    next_block = is_last ? blocks.last % blocks_ : block;
      const int64_t last_read = first_block(column) + own_blocks_;
      const Range read{std::max(block, first_block(column)), std::min(blocks.last, last_read)};
      for (int64_t first = read.first; first < read.last; first += nearest_) {
        const Range own{first, std::min(first + nearest_, read.last)};
        const uint16_t* coming = weights_at(call, next, next_block + first - read.first);
        for (int64_t row = rows.first; row < rows.last; row += 2) {
          alignas(64) float direct[4 * kSums];
          const int64_t tiles[2] = {std::min<int64_t>(2, rows.last - row), columns_at(column)};
          float* sums = waits || passes ? waiting + (row - rows.first) * tiles[1] * kSums : direct;
          if (lines.is_by_numbers)
            multiply_plainly(call, lines, row, column, tiles, sums);
          else
            multiply(call, lines, row, column, tiles, own, {coming, columns_at(next), (row - rows.first) / 2, pairs},
                     sums);
          if (own.last == last_read) finish(call, row, column, tiles, sums);
        }
      }
    }
  }
}

void TileConvolution::compute(const Call& call, const Part& part, char* scratch) const {
  // As even as they can be, in pairs.
  const int64_t pairs = ceil_div(part.rows.last - part.rows.first, 2);
  const int64_t chunks = ceil_div(pairs, (most_rows_ + 1) / 2);
  for (int64_t chunk = 0; chunk < chunks; chunk++) {
    const auto at = [&](int64_t i) { return std::min(part.rows.first + pairs * i / chunks * 2, part.rows.last); };
    Range rows{at(chunk), at(chunk + 1)};
    // What ends beyond its rows is for itself, that others need not be copied.
    const int64_t whole = size_ / kTileRows;
    if (is_read_in_place_ && rows.first < whole && whole < rows.last) {
      compute(call, part, {rows.first, whole}, scratch);
      rows.first = whole;
    }
    compute(call, part, rows, scratch);
  }
}

void TileConvolution::run(const void* src, const void* packed, const float* bias, void* dst, void* scratch) const {
  const Call call{src, static_cast<const uint16_t*>(packed), bias, dst};
  share(threads_, threads_, [&](int64_t part, int slot) {
    begin_tiles(unit_, static_cast<int>(tile_rows_));
    compute(call, part_of(static_cast<int>(part), threads_), static_cast<char*>(scratch) + slot * own_bytes());
    end_tiles(unit_);
  });
}

}  // namespace gopt_runtime
