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

// Halves to even; what is no number stays so.
uint16_t nearest_bfloat16(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t nearest = bits + 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<uint16_t>(((bits & kMagnitude) > kExponent ? bits | 0x00400000u : nearest) >> 16);
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
        taps_.push_back((static_cast<int64_t>(number / 3) * size + offset) * kTileDepth);
      }
  lines_ = static_cast<int64_t>(phases_.size() / 3) * size;
  // Planes that are multiples of a way of the caches apart would push one another out.
  constexpr int64_t kWay = 1024, kApart = 80;
  if (lines_ > kWay / 2 && std::min(lines_ % kWay, kWay - lines_ % kWay) < kApart) lines_ += 2 * kApart;
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

// Tiles of columns, blocks of channels, taps, terms; in a tile pairs of channels.
void TileConvolution::pack(const TileWeights& w, void* packed) const {
  const int64_t taps = static_cast<int64_t>(taps_.size());
  auto* tiles = static_cast<uint16_t*>(packed);
  std::memset(packed, 0, packed_bytes());
#pragma omp parallel for schedule(static) num_threads(threads_)
  for (int64_t o = 0; o < columns_ * kTileColumns; o++)
    for (int64_t i = 0; i < s_.in && o < s_.out; i++)
      for (int64_t tap = 0; tap < taps; tap++) {
        uint16_t terms[kMostTerms];
        split_terms(value_at(w.data, w.element, o * w.out + i * w.in + tap * w.tap), terms);
        const int64_t tile = ((o / kTileColumns * blocks_ + i / kTileDepth) * taps + tap) * terms_;
        const int64_t within = i % kTileDepth / 2 * kTileDepth + o % kTileColumns * 2 + i % 2;
        for (int t = 0; t < terms_; t++) tiles[(tile + t) * kTileElements + within] = terms[t];
      }
}

// ---- the source ----

// Reads of the last tile go beyond its plane.
size_t TileConvolution::scratch_bytes() const {
  const int64_t lines = line(planes_of(true)) * blocks_ + kTileRows;
  const int64_t sums = threads_ * kMostRows * columns_ * kSums * static_cast<int64_t>(sizeof(float));
  return static_cast<size_t>(lines * kTileDepth) * sizeof(uint16_t) + static_cast<size_t>(sums);
}

// 16 channels of each of these positions.
uint32_t TileConvolution::copy_terms(const void* from, uint16_t* to, int64_t positions, int64_t block, bool all) const {
  const int64_t left = s_.in - block * kLanes;
  const int channels = static_cast<int>(std::clamp<int64_t>(left, 0, kLanes));
  const int64_t step = src_.position * s_.strides[2];
  if (src_.element == Element::BFloat16) {
    const auto* numbers = static_cast<const uint16_t*>(from);
    for (int64_t i = 0; i < positions; i++)
      for (int c = 0; c < kLanes; c++)
        to[i * kTileDepth + c] = c < channels ? numbers[i * step + c * src_.channel] : uint16_t{0};
    return 0;
  }
  const TermRow row{static_cast<const float*>(from), step, src_.channel, positions, channels, to, lines_ * kTileDepth};
  if (!all) return split_function(terms_)(row);
  split_all(terms_, row);
  return 0;
}

// 32 channels of a segment of a row of positions. Returns the largest magnitude, as SplitRow does.
uint32_t TileConvolution::copy(const void* src, uint16_t* lines, int64_t task, bool all) const {
  const int64_t block = task % blocks_, first = task / blocks_ % segments_ * kSegment;
  const int64_t last = std::min(first + kSegment, extents_[2]);
  int64_t row = task / blocks_ / segments_;
  const int planes = planes_of(all);
  uint16_t* to = lines + (block * line(planes) + row * extents_[2] + first) * kTileDepth;
  const int64_t y = row % extents_[1], z = row / extents_[1] % extents_[0];
  row /= extents_[1] * extents_[0];
  const int64_t image = row % s_.batch, *phase = &phases_[static_cast<size_t>(row / s_.batch * 3)];
  const int64_t at[2] = {z * s_.strides[0] + phase[0] - s_.pads[0], y * s_.strides[1] + phase[1] - s_.pads[1]};
  const int64_t shift = s_.pads[2] - phase[2], stride = s_.strides[2];
  int64_t from = std::clamp(ceil_div(shift, stride), first, last);
  int64_t until = std::clamp(ceil_div(s_.src[2] + shift, stride), from, last);
  if (at[0] < 0 || at[0] >= s_.src[0] || at[1] < 0 || at[1] >= s_.src[1]) from = until = last;
  const auto clear = [&](int64_t begin, int64_t end) {
    for (int t = 0; t < planes && begin < end; t++)
      std::memset(to + (line(t) + begin - first) * kTileDepth, 0, static_cast<size_t>(end - begin) * kTileDepth * 2);
  };
  clear(first, from);
  clear(until, last);
  if (from == until) return 0;
  const int64_t position = (at[0] * s_.src[1] + at[1]) * s_.src[2] + from * stride - shift;
  uint32_t largest = 0;
  for (int64_t half = 2 * block; half < 2 * block + 2; half++) {
    const int64_t start = image * src_.image + position * src_.position + half * src_.block;
    uint16_t* own = to + (from - first) * kTileDepth + half % 2 * kLanes;
    largest = std::max(largest, copy_terms(at_element(src, src_.element, start), own, until - from, half, all));
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
                               const int64_t (&blocks)[2], const uint16_t* ahead, float* sums) const {
  const int planes = planes_of(call.has_again);
  const auto taps = static_cast<int64_t>(taps_.size());
  TileProduct p{};
  p.block = line(planes) * kTileDepth;
  p.x = call.lines + blocks[0] * p.block + row * kTileElements;
  p.term = lines_ * kTileDepth;
  p.again = call.has_again ? line(terms_) * kTileDepth : 0;
  p.taps = taps_.data();
  p.tap_count = taps;
  p.blocks = blocks[1] - blocks[0];
  p.w_column = blocks_ * taps * terms_ * kTileElements;
  p.w = call.packed + column * p.w_column + blocks[0] * taps * terms_ * kTileElements;
  p.ahead = ahead;
  p.sums = sums;
  p.continues = blocks[0] > 0;
  const auto add = [&](TileTerms which) {
    multiply_function(unit_, terms_, which, static_cast<int>(tiles[0]), static_cast<int>(tiles[1]))(p);
  };
  if (!is_apart_) return add(TileTerms::All);
  add(TileTerms::Lower);
  p.continues = true;
  p.ahead = nullptr;
  add(TileTerms::First);
}

void TileConvolution::compute(const Call& call, const Part& part, float* kept) const {
  const Blocking b = blocking(part);
  const int64_t w_column = blocks_ * static_cast<int64_t>(taps_.size()) * terms_ * kTileElements;
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
          const bool is_last = row + 2 >= bottom && column + 3 < part.last_column;
          multiply(call, row, column, tiles, blocks,
                   is_last ? call.packed + (column + 2) * w_column + block * (w_column / blocks_) : nullptr, sums);
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
    for (int64_t c = 0; c < channels; c++) {
      const float value = value_at(post.operand, post.element, channel + c);
      for (int64_t r = 0; r < tile_rows_; r++) sums[r * kTileColumns + c] += value;
    }
    return;
  }
  const int64_t* offsets = &offsets_[static_cast<size_t>(row * kTileRows)];
  for (int64_t r = 0; r < tile_rows_; r++) {
    if (offsets[r] < 0) continue;
    const int64_t from = offsets[r] + column * dst_.block;
    float* own = sums + r * kTileColumns;
    if (dst_.element == Element::Float && dst_.channel == 1) {
      const float* other = static_cast<const float*>(post.operand) + from;
      for (int64_t c = 0; c < channels; c++) own[c] += other[c];
    } else {
      for (int64_t c = 0; c < channels; c++) own[c] += value_at(post.operand, dst_.element, from + c * dst_.channel);
    }
  }
}

void TileConvolution::store(const Call& call, int64_t row, int64_t column, float* sums) const {
  const int64_t channel = column * kTileColumns, channels = std::min(kLanes, s_.out - channel);
  if (call.bias)
    for (int64_t r = 0; r < tile_rows_; r++)
      for (int64_t c = 0; c < channels; c++) sums[r * kTileColumns + c] += call.bias[channel + c];
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
  const int64_t filled = dst_.fills_blocks ? kLanes : channels;
  for (int64_t r = 0; r < tile_rows_ && channels < filled; r++)
    std::fill(sums + r * kTileColumns + channels, sums + (r + 1) * kTileColumns, 0.0f);
  const int64_t* offsets = &offsets_[static_cast<size_t>(row * kTileRows)];
  for (int64_t r = 0; r < tile_rows_; r++) {
    if (offsets[r] < 0) continue;
    const int64_t to = offsets[r] + column * dst_.block;
    const float* own = sums + r * kTileColumns;
    if (dst_.element == Element::BFloat16) {
      auto* numbers = static_cast<uint16_t*>(call.dst) + to;
      for (int64_t c = 0; c < filled; c++) numbers[c * dst_.channel] = nearest_bfloat16(own[c]);
    } else {
      float* numbers = static_cast<float*>(call.dst) + to;
      if (dst_.channel == 1)
        std::copy(own, own + filled, numbers);
      else
        for (int64_t c = 0; c < filled; c++) numbers[c * dst_.channel] = own[c];
    }
  }
}

void TileConvolution::run(const void* src, const void* packed, const float* bias, void* dst, void* scratch) const {
  auto* lines = static_cast<uint16_t*>(scratch);
  const int64_t tasks =
      static_cast<int64_t>(phases_.size() / 3) * s_.batch * extents_[0] * extents_[1] * segments_ * blocks_;
  const int64_t copied = line(planes_of(true)) * blocks_ + kTileRows;
  auto* kept = reinterpret_cast<float*>(lines + copied * kTileDepth);
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
