#include "gopt_tiles.h"

#include <omp.h>

#include <algorithm>
#include <cstring>

#include "gopt_activation.h"
#include "gopt_terms.h"

namespace gopt_runtime {
namespace {

constexpr int64_t kLanes = 16, kSums = kTileRows * kTileColumns;
constexpr int64_t kSegment = 64;             // positions
constexpr int64_t kNear = int64_t{1} << 20;  // bytes that stay in a core's cache
constexpr int64_t kMostRows = 16;            // tiles, where sums wait for more channels

int64_t ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }
int64_t product(const int64_t (&extents)[3]) { return extents[0] * extents[1] * extents[2]; }

float value_at(const void* data, Element element, int64_t i) {
  if (element == Element::Float) return static_cast<const float*>(data)[i];
  return float_of(static_cast<uint32_t>(static_cast<const uint16_t*>(data)[i]) << 16);
}
const void* at_element(const void* data, Element element, int64_t i) {
  return static_cast<const char*>(data) + i * (element == Element::Float ? 4 : 2);
}

// 16 numbers to each of these rows.
void add_to_rows(const float* values, int64_t rows, float* sums) {
  for (int64_t r = 0; r < rows; r++, sums += kLanes)
    for (int c = 0; c < kLanes; c++) sums[c] += values[c];
}

template <class T>
void put_row(const T* from, T* to, int64_t count, int64_t step, bool is_whole) {
  if (is_whole)
    std::memcpy(to, from, kLanes * sizeof *to);
  else
    for (int64_t c = 0; c < count; c++) to[c * step] = from[c];
}

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

}  // namespace

// Half-open ranges of tiles.
struct TileConvolution::Part {
  int64_t first_row, last_row, first_column, last_column;
};

TileConvolution::TileConvolution(const TileShape& shape, const TileOrder& src, const TileOrder& dst, int terms,
                                 std::vector<Post> posts, int threads, TileUnit unit)
    : s_(joined(shape, src, dst)),
      src_(src),
      dst_(dst),
      terms_(terms),
      posts_(std::move(posts)),
      threads_(threads),
      unit_(unit) {
  blocks_ = ceil_div(s_.in, kTileDepth);
  columns_ = ceil_div(s_.out, kTileColumns);
  // All products of terms round a sum once for each block of channels, arithmetic in floats for each channel.
  constexpr int64_t kChannelsOfRounding = 3;
  is_apart_ = terms_ == kMostTerms && s_.in < kChannelsOfRounding * terms_ * (terms_ + 1) / 2 * blocks_;
  describe_axes();
  add_positions();
}

// Tap k reads phase k * dilation % stride.
void TileConvolution::describe_axes() {
  for (int a = 0; a < 3; a++) extents_[a] = s_.dst[a] + (s_.kernel[a] - 1) * s_.dilations[a] / s_.strides[a];
  const int64_t size = s_.batch * product(extents_);
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
        taps_.push_back(static_cast<int64_t>(number / 3) * size + offset);
      }
  lines_ = static_cast<int64_t>(phases_.size() / 3) * size;
  segments_ = ceil_div(extents_[2], kSegment);
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
  lines_ = std::max(lines_, rows_ * kTileRows);
}

// ---- weights ----

bool TileConvolution::takes(const TileWeights& w) const {
  const int64_t taps = static_cast<int64_t>(taps_.size());
  const uint32_t limit = terms_ == 1 && w.element == Element::BFloat16 ? UINT32_MAX : kRoundsToInfinity;
  uint32_t largest = 0;
  for (int64_t o = 0; o < s_.out; o++)
    for (int64_t i = 0; i < s_.in; i++)
      for (int64_t tap = 0; tap < taps; tap++)
        largest =
            std::max(largest, bits_of(value_at(w.data, w.element, o * w.out + i * w.in + tap * w.tap)) & kMagnitude);
  return largest < limit;
}

size_t TileConvolution::packed_bytes() const {
  return static_cast<size_t>(columns_ * blocks_ * terms_ * kTileElements) * taps_.size() * sizeof(uint16_t);
}

// Pairs of columns, blocks of channels, taps, terms, columns; in a tile pairs of channels.
void TileConvolution::pack(const TileWeights& w, void* packed) const {
  const int64_t taps = static_cast<int64_t>(taps_.size());
  auto* tiles = static_cast<uint16_t*>(packed);
  std::memset(packed, 0, packed_bytes());
#pragma omp parallel for schedule(static) num_threads(threads_)
  for (int64_t o = 0; o < s_.out; o++) {
    const int64_t column = o / kTileColumns, columns = std::min<int64_t>(2, columns_ - column / 2 * 2);
    for (int64_t i = 0; i < s_.in; i++)
      for (int64_t tap = 0; tap < taps; tap++) {
        uint16_t terms[kMostTerms];
        split_terms(value_at(w.data, w.element, o * w.out + i * w.in + tap * w.tap), terms);
        uint16_t* to =
            tiles + column / 2 * packed_pair() + i % kTileDepth / 2 * kTileDepth + o % kTileColumns * 2 + i % 2;
        for (int t = 0; t < terms_; t++)
          to[(((i / kTileDepth * taps + tap) * terms_ + t) * columns + column % 2) * kTileElements] = terms[t];
      }
  }
}

// ---- the source ----

// Reads of the last tile go beyond what is copied.
size_t TileConvolution::scratch_bytes() const {
  const int64_t elements = (lines_ * blocks_ + kTileRows) * line(true);
  const int64_t sums = threads_ * kMostRows * columns_ * kSums * static_cast<int64_t>(sizeof(float));
  return static_cast<size_t>(elements) * sizeof(uint16_t) + static_cast<size_t>(sums);
}

// 16 channels of each of these positions.
uint32_t TileConvolution::copy_terms(const void* from, uint16_t* to, int64_t positions, int64_t block, bool all) const {
  const int64_t left = s_.in - block * kLanes;
  const int channels = static_cast<int>(std::clamp<int64_t>(left, 0, kLanes));
  const int64_t step = src_.position * s_.strides[2];
  if (src_.element == Element::BFloat16) {
    const auto* numbers = static_cast<const uint16_t*>(from);
    const bool is_whole = channels == kLanes && src_.channel == 1;
    for (int64_t i = 0; i < positions; i++, numbers += step, to += line(all))
      if (is_whole)
        std::memcpy(to, numbers, kLanes * sizeof *to);
      else
        for (int c = 0; c < kLanes; c++) to[c] = c < channels ? numbers[c * src_.channel] : uint16_t{0};
    return 0;
  }
  const TermRow row{static_cast<const float*>(from), step, src_.channel, positions, channels, to, line(all)};
  if (!all) return split_function(terms_)(row);
  split_all(terms_, row);
  return 0;
}

// 32 channels of a segment of a row of positions. Returns the largest magnitude, as SplitRow does.
uint32_t TileConvolution::copy(const void* src, uint16_t* lines, int64_t task, bool all) const {
  const int64_t block = task % blocks_, first = task / blocks_ % segments_ * kSegment;
  const int64_t last = std::min(first + kSegment, extents_[2]), line_size = line(all);
  int64_t row = task / blocks_ / segments_;
  const int64_t start = row * extents_[2], y = row % extents_[1], z = row / extents_[1] % extents_[0];
  row /= extents_[1] * extents_[0];
  const int64_t image = row % s_.batch, *phase = &phases_[static_cast<size_t>(row / s_.batch * 3)];
  const int64_t at[2] = {z * s_.strides[0] + phase[0] - s_.pads[0], y * s_.strides[1] + phase[1] - s_.pads[1]};
  const int64_t shift = s_.pads[2] - phase[2], stride = s_.strides[2];
  int64_t from = std::clamp(ceil_div(shift, stride), first, last);
  int64_t until = std::clamp(ceil_div(s_.src[2] + shift, stride), from, last);
  if (at[0] < 0 || at[0] >= s_.src[0] || at[1] < 0 || at[1] >= s_.src[1]) from = until = last;
  const auto clear = [&](int64_t position, int64_t count) {
    std::memset(lines + place(start + position, block, line_size), 0,
                static_cast<size_t>(count * line_size) * sizeof *lines);
  };
  clear(first, from - first);
  clear(until, last - until);
  if (from == until) return 0;
  const int64_t source = (at[0] * s_.src[1] + at[1]) * s_.src[2] + from * stride - shift;
  uint32_t largest = 0;
  for (int64_t half = 0; half < 2; half++) {
    const int64_t channels = 2 * block + half;
    const int64_t place_of_source = image * src_.image + source * src_.position + channels * src_.block;
    uint16_t* to = lines + place(start + from, block, line_size) + half * kLanes;
    largest =
        std::max(largest, copy_terms(at_element(src, src_.element, place_of_source), to, until - from, channels, all));
  }
  return largest;
}

// ---- products ----

// Each thread has a rectangle of tiles, so that little is read, and no thread waits long for another.
TileConvolution::Part TileConvolution::part_of(int thread, int threads) const {
  const int64_t rows = ceil_div(rows_, 2), columns = ceil_div(columns_, 2),
                steps = blocks_ * static_cast<int64_t>(taps_.size());
  const double product = 64.0 * terms_ * (terms_ + 1) / 2 * static_cast<double>(steps);  // cycles, of two tiles by two
  const double read_rows = 8.0 * terms_ * static_cast<double>(lines_ * blocks_);
  const double read_columns = 128.0 * terms_ * static_cast<double>(steps * columns_);
  double least = 0;
  int64_t best = 0;
  for (int64_t across = 1; across <= threads; across++) {
    const int64_t down = threads / across;
    const double cost = product * static_cast<double>(ceil_div(rows, down) * ceil_div(columns, across)) +
                        read_rows / static_cast<double>(down) + read_columns / static_cast<double>(across);
    if (best == 0 || cost < least) best = across, least = cost;
  }
  const int64_t down = threads / best, i = thread / best, j = thread % best;
  if (i >= down) return {0, 0, 0, 0};
  const auto share = [](int64_t count, int64_t part, int64_t parts) { return count * part / parts * 2; };
  return {share(rows, i, down), std::min(rows_, share(rows, i + 1, down)), share(columns, j, best),
          std::min(columns_, share(columns, j + 1, best))};
}

// Rows whose channels stay near while columns pass by. Where all columns are near, too, they pass again for other
// rows; else sums are kept, and rows wait for the next channels.
TileConvolution::Blocking TileConvolution::blocking(const Part& part) const {
  const int64_t rows = part.last_row - part.first_row, row_bytes = kTileRows * kTileDepth * 2 * terms_;
  const int64_t column_bytes = blocks_ * static_cast<int64_t>(taps_.size()) * terms_ * kTileElements * 2;
  if (rows * blocks_ * row_bytes <= kNear) return {std::max<int64_t>(rows, 1), blocks_};
  if ((part.last_column - part.first_column) * column_bytes <= kNear)
    return {std::max<int64_t>(2, kNear / (blocks_ * row_bytes) / 2 * 2), blocks_};
  const int64_t most = std::min(rows, kMostRows);
  return {most, std::clamp<int64_t>(kNear / (most * row_bytes), 1, blocks_)};
}

void TileConvolution::multiply(const Call& call, int64_t row, int64_t column, const int64_t (&tiles)[2],
                               const int64_t (&blocks)[2], float* sums) const {
  const auto taps = static_cast<int64_t>(taps_.size());
  TileProduct p{};
  p.line = line(call.has_again);
  p.x = call.lines + place(row * kTileRows, blocks[0], p.line);
  p.row = kTileRows * p.line;
  p.block = lines_ * p.line;
  p.again = call.has_again ? terms_ * kTileDepth : 0;
  p.taps = taps_.data();
  p.tap_count = taps;
  p.blocks = blocks[1] - blocks[0];
  p.w = call.packed + column / 2 * packed_pair() + blocks[0] * taps * terms_ * tiles[1] * kTileElements;
  p.sums = sums;
  p.continues = blocks[0] > 0;
  const auto add = [&](TileTerms which) {
    multiply_function(unit_, terms_, which, static_cast<int>(tiles[0]), static_cast<int>(tiles[1]))(p);
  };
  if (!is_apart_) return add(TileTerms::All);
  add(TileTerms::Lower);
  p.continues = true;
  add(TileTerms::First);
}

void TileConvolution::compute(const Call& call, const Part& part, float* kept) const {
  const Blocking b = blocking(part);
  for (int64_t top = part.first_row; top < part.last_row; top += b.rows) {
    const int64_t bottom = std::min(top + b.rows, part.last_row);
    for (int64_t block = 0; block < blocks_; block += b.channels) {
      const int64_t blocks[2] = {block, std::min(block + b.channels, blocks_)};
      float* waiting = kept;
      for (int64_t column = part.first_column; column < part.last_column; column += 2)
        for (int64_t row = top; row < bottom; row += 2) {
          alignas(64) float own[4 * kSums];
          const int64_t tiles[2] = {std::min<int64_t>(2, bottom - row),
                                    std::min<int64_t>(2, part.last_column - column)};
          float* sums = b.channels < blocks_ ? waiting : own;
          waiting += tiles[0] * tiles[1] * kSums;
          multiply(call, row, column, tiles, blocks, sums);
          if (blocks[1] < blocks_) continue;
          for (int64_t r = 0; r < tiles[0]; r++)
            for (int64_t c = 0; c < tiles[1]; c++) store(call, row + r, column + c, sums + (r * tiles[1] + c) * kSums);
        }
    }
  }
}

// ---- what is done with a tile of sums ----

void TileConvolution::add(const Post& post, int64_t row, int64_t column, float* sums) const {
  int64_t count = 1;
  for (const int64_t d : post.dims) count *= d;
  const int64_t channel = column * kTileColumns, channels = std::min(kLanes, s_.out - channel);
  if (!post.dims.empty() && count == s_.out) {
    float values[kLanes] = {};
    for (int64_t c = 0; c < channels; c++) values[c] = value_at(post.operand, post.element, channel + c);
    return add_to_rows(values, tile_rows_, sums);
  }
  const int64_t* offsets = &offsets_[static_cast<size_t>(row * kTileRows)];
  const bool is_whole = channels == kLanes && dst_.channel == 1 && dst_.element == Element::Float;
  for (int64_t r = 0; r < tile_rows_; r++) {
    if (offsets[r] < 0) continue;
    const int64_t from = offsets[r] + column * dst_.block;
    float* own = sums + r * kTileColumns;
    if (is_whole)
      add_to_rows(static_cast<const float*>(post.operand) + from, 1, own);
    else
      for (int64_t c = 0; c < channels; c++) own[c] += value_at(post.operand, dst_.element, from + c * dst_.channel);
  }
}

void TileConvolution::store(const Call& call, int64_t row, int64_t column, float* sums) const {
  const int64_t channel = column * kTileColumns, channels = std::min(kLanes, s_.out - channel);
  if (call.bias) {
    float values[kLanes] = {};
    std::copy_n(call.bias + channel, channels, values);
    add_to_rows(values, tile_rows_, sums);
  }
  for (const Post& post : posts_) {
    if (post.kind == PostKind::Sum) {
      Post own{PostKind::Add};
      own.operand = call.dst;
      add(own, row, column, sums);
    } else if (post.kind == PostKind::Add) {
      add(post, row, column, sums);
    } else {
      apply_activation(post, sums, tile_rows_ * kTileColumns);
    }
  }
  for (int64_t r = 0; r < tile_rows_ && dst_.fills_blocks && channels < kLanes; r++)
    std::fill(sums + r * kTileColumns + channels, sums + (r + 1) * kTileColumns, 0.0f);
  put(call, row, column, sums);
}

void TileConvolution::put(const Call& call, int64_t row, int64_t column, const float* sums) const {
  const int64_t channels = dst_.fills_blocks ? kLanes : std::min(kLanes, s_.out - column * kTileColumns);
  const int64_t* offsets = &offsets_[static_cast<size_t>(row * kTileRows)];
  const bool is_whole = channels == kLanes && dst_.channel == 1, is_half = dst_.element == Element::BFloat16;
  uint16_t halves[kSums];
  if (is_half) narrow_function()(sums, tile_rows_ * kTileColumns, halves);
  for (int64_t r = 0; r < tile_rows_; r++) {
    if (offsets[r] < 0) continue;
    const int64_t to = offsets[r] + column * dst_.block;
    if (is_half)
      put_row(halves + r * kTileColumns, static_cast<uint16_t*>(call.dst) + to, channels, dst_.channel, is_whole);
    else
      put_row(sums + r * kTileColumns, static_cast<float*>(call.dst) + to, channels, dst_.channel, is_whole);
  }
}

void TileConvolution::run(const void* src, const void* packed, const float* bias, void* dst, void* scratch) const {
  auto* lines = static_cast<uint16_t*>(scratch);
  const int64_t tasks =
      static_cast<int64_t>(phases_.size() / 3) * s_.batch * extents_[0] * extents_[1] * segments_ * blocks_;
  auto* kept = reinterpret_cast<float*>(lines + (lines_ * blocks_ + kTileRows) * line(true));
  Call call{lines, static_cast<const uint16_t*>(packed), bias, dst, false};
  uint32_t largest = 0;
#pragma omp parallel num_threads(threads_)
  {
#pragma omp for schedule(static) reduction(max : largest)
    for (int64_t task = 0; task < tasks; task++) largest = std::max(largest, copy(src, lines, task, false));
    if (largest >= kRoundsToInfinity) {
#pragma omp for schedule(static)
      for (int64_t task = 0; task < tasks; task++) copy(src, lines, task, true);
    }
    Call own = call;
    own.has_again = largest >= kRoundsToInfinity;
    const int thread = omp_get_thread_num();
    begin_tiles(unit_, static_cast<int>(tile_rows_));
    compute(own, part_of(thread, omp_get_num_threads()), kept + thread * kMostRows * columns_ * kSums);
    end_tiles(unit_);
  }
}

}  // namespace gopt_runtime
