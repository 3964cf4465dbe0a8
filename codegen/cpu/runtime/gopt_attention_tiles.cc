#include "gopt_attention_tiles.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "gopt_math.h"
#include "gopt_team.h"
#include "gopt_terms.h"

namespace gopt_runtime {
namespace {

constexpr int64_t kRows = 2 * kTileRows, kPair = 2 * kTileColumns, kPart = 512;  // lines; keys or elements; keys
constexpr int64_t kSums = kTileRows * kTileColumns;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t matrices_of(const AttentionShape& s) { return s.batch[0] * s.batch[1] * s.batch[2]; }

// A matrix whose operands lie one after another.
AttentionShape alone(AttentionShape s) {
  std::fill(std::begin(s.batch), std::end(s.batch), 1);
  s.query = {0, {0, 0, 0}, s.depth, 1};
  s.key = s.query;
  s.value = {0, {0, 0, 0}, s.value_depth, 1};
  s.result = s.value;
  s.mask.offset = 0;
  return s;
}

}  // namespace

struct AttentionTiles::Room {
  uint16_t *keys, *values;    // tiles of right operands
  uint16_t *lines, *queries;  // of 16 keys or values; of the query's
  uint16_t* terms;            // lines of exponentials
  float *scores, *exponentials, *sums, *result;
  float *largest, *sum, *factor;             // of each line
  float *query, *key, *value, *made, *rows;  // for a matrix that is computed in floats
};

AttentionTiles::AttentionTiles(const AttentionShape& shape, int threads, TileUnit unit, bool has_unit)
    : s_(shape),
      in_floats_(alone(shape), 1),
      terms_(shape.tile_terms),
      threads_(threads),
      unit_(unit),
      has_unit_(has_unit),
      blocks_(ceil_div(shape.depth, kTileDepth)),
      key_blocks_(ceil_div(shape.keys, kTileDepth)),
      value_pairs_(ceil_div(shape.value_depth, kPair)) {
  const int64_t parts = ceil_div(2 * threads, std::max<int64_t>(1, matrices_of(s_)));
  groups_ = has_unit_ ? std::clamp<int64_t>(parts, 1, std::max<int64_t>(1, ceil_div(s_.rows, kRows))) : 1;
}

size_t AttentionTiles::divide(char* scratch, Room& r) const {
  size_t taken = 0;
  const auto take = [&](int64_t bytes) {
    char* place = scratch ? scratch + taken : nullptr;
    taken += static_cast<size_t>((bytes + 63) / 64 * 64);
    return place;
  };
  const auto halves = [&](int64_t count) { return reinterpret_cast<uint16_t*>(take(count * 2)); };
  const auto floats = [&](int64_t count) { return reinterpret_cast<float*>(take(count * 4)); };
  const int64_t part = std::min(kPart, key_blocks_ * kTileDepth);
  r.keys = halves(key_blocks_ * blocks_ * terms_ * 2 * kTileElements);
  r.values = halves(value_pairs_ * key_blocks_ * terms_ * 2 * kTileElements);
  r.lines = halves(kTileDepth * std::max<int64_t>(line(), kTileDepth));
  r.queries = halves(blocks_ * kRows * line());
  r.terms = halves(part / kTileDepth * kRows * line());
  r.scores = floats(part / kPair * 4 * kSums);
  r.exponentials = floats(kRows * part);
  r.sums = floats(4 * kSums);
  r.result = floats(kRows * value_pairs_ * kPair);
  r.largest = floats(kRows);
  r.sum = floats(kRows);
  r.factor = floats(kRows);
  r.query = floats(s_.rows * s_.depth);
  r.key = floats(s_.keys * s_.depth);
  r.value = floats(s_.keys * s_.value_depth);
  r.made = floats(s_.rows * s_.value_depth);
  r.rows = floats(static_cast<int64_t>(in_floats_.scratch_floats()));
  return taken;
}

size_t AttentionTiles::scratch_bytes() const {
  Room none{};
  return static_cast<size_t>(threads_) * divide(nullptr, none);
}

// ---- operands ----

// 32 elements of each of these lines, from the first of a block of them on.
uint32_t AttentionTiles::fill_lines(const void* from, const AttentionMatrices& m, int64_t lines, int64_t block,
                                    int64_t depth, uint16_t* to) const {
  const int channels = static_cast<int>(std::min<int64_t>(depth - block * kTileDepth, kTileDepth));
  const void* first = at_element(from, s_.operands, block * kTileDepth * m.element);
  if (s_.operands == Element::Float) {
    const TermRow row{
        static_cast<const float*>(first), m.line, m.element, kTileColumns * m.element, lines, channels, to, line()};
    return split_function(terms_)(row);
  }
  copy_halves(
      {static_cast<const uint16_t*>(first), m.line, m.element, kTileColumns * m.element, lines, channels, to, line()});
  return 0;
}

uint32_t AttentionTiles::pack_keys(const void* key, const Room& r) const {
  uint32_t largest = 0;
  for (int64_t first = 0; first < key_blocks_ * kTileDepth; first += kTileColumns) {
    const int64_t count = std::clamp<int64_t>(s_.keys - first, 0, kTileColumns);
    for (int64_t block = 0; block < blocks_; block++) {
      if (count < kTileColumns) std::memset(r.lines, 0, static_cast<size_t>(kTileColumns * line()) * sizeof *r.lines);
      if (count > 0)
        largest = std::max(largest, fill_lines(at_element(key, s_.operands, first * s_.key.line), s_.key, count, block,
                                               s_.depth, r.lines));
      for (int64_t t = 0; t < terms_; t++)
        turn_over_words(
            r.lines + t * kTileDepth, line(),
            r.keys + (((first / kPair * blocks_ + block) * terms_ + t) * 2 + first / kTileColumns % 2) * kTileElements);
    }
  }
  return largest;
}

// A row of a tile is a pair of keys: neighbours where there is one term, else 16 apart, as exponentials lie in lines.
uint32_t AttentionTiles::pack_values(const void* value, const Room& r) const {
  uint32_t largest = 0;
  const int64_t elements = value_pairs_ * kPair;
  for (int64_t block = 0; block < key_blocks_; block++)
    for (int64_t first = 0; first < elements; first += kTileColumns) {
      const int64_t keys = std::min<int64_t>(s_.keys - block * kTileDepth, kTileDepth);
      const int64_t count = std::clamp<int64_t>(s_.value_depth - first, 0, kTileColumns);
      uint16_t* tile = r.values + (first / kPair * key_blocks_ + block) * terms_ * 2 * kTileElements +
                       first / kTileColumns % 2 * kTileElements;
      const int64_t place = block * kTileDepth * s_.value.line + first * s_.value.element;
      const void* from = at_element(value, s_.operands, place);
      const bool is_whole = keys == kTileDepth && count == kTileColumns;
      if (s_.operands == Element::BFloat16) {
        auto* own = reinterpret_cast<uint16_t*>(r.exponentials);
        const auto* given = static_cast<const uint16_t*>(from);
        if (!is_whole || s_.value.element != 1) {
          std::fill(own, own + kTileDepth * kTileColumns, uint16_t{0});
          for (int64_t k = 0; k < keys; k++)
            for (int64_t c = 0; c < count; c++)
              own[k * kTileColumns + c] = given[k * s_.value.line + c * s_.value.element];
        }
        const bool is_given = is_whole && s_.value.element == 1;
        const uint16_t* lines = is_given ? given : own;
        const int64_t step = is_given ? s_.value.line : kTileColumns;
        for (int64_t pair = 0; pair < kTileDepth / 2; pair++)
          interleave_lines(lines + 2 * pair * step, lines + (2 * pair + 1) * step, tile + pair * kTileDepth);
        continue;
      }
      TermRow row{static_cast<const float*>(from),
                  s_.value.line,
                  s_.value.element,
                  kTileColumns * s_.value.line,
                  kTileDepth / 2,
                  kTileDepth,
                  r.lines,
                  line()};
      if (!is_whole) {
        float* own = r.exponentials;
        std::fill(own, own + kTileDepth * kTileColumns, 0.0f);
        for (int64_t k = 0; k < keys; k++)
          for (int64_t c = 0; c < count; c++)
            own[k * kTileColumns + c] = value_at(from, s_.operands, k * s_.value.line + c * s_.value.element);
        row.from = own;
        row.position = kTileColumns;
        row.channel = 1;
        row.half = kTileColumns * kTileColumns;
      }
      largest = std::max(largest, split_function(terms_)(row));
      // The first half of a word is of the first keys: as channels are told apart by place_in_line().
      for (int64_t t = 0; t < terms_; t++)
        for (int64_t pair = 0; pair < kTileDepth / 2; pair++)
          std::memcpy(tile + t * 2 * kTileElements + pair * kTileDepth, r.lines + pair * line() + t * kTileDepth,
                      kTileDepth * sizeof *tile);
    }
  return largest;
}

uint32_t AttentionTiles::pack_queries(const void* query, int64_t rows, const Room& r) const {
  uint32_t largest = 0;
  if (rows < kRows) std::memset(r.queries, 0, static_cast<size_t>(blocks_ * kRows * line()) * sizeof *r.queries);
  for (int64_t block = 0; block < blocks_; block++)
    largest = std::max(largest, fill_lines(query, s_.query, rows, block, s_.depth, r.queries + block * kRows * line()));
  return largest;
}

// ---- products ----

// Lines of a left operand, in blocks of 32 elements, by a pair of columns.
void AttentionTiles::multiply(const uint16_t* lines, int64_t blocks, const uint16_t* tiles, int rows,
                              float* sums) const {
  static constexpr int64_t kHere[1] = {0};
  TileProduct p{};
  p.x = lines;
  p.line = line();
  p.row = kTileRows * line();
  p.block = kRows * line();
  p.taps = kHere;
  p.tap_count = 1;
  p.blocks = blocks;
  p.w = tiles;
  p.sums = sums;
  multiply_function(unit_, terms_, TileTerms::All, rows, 2)(p);
}

// A sum of terms' products is no number where two of them are beyond the floats on either side, though a score is one.
// Where all keys are one part, exponentials are divided by their sum, as a softmax is, and not what they weigh.
bool AttentionTiles::take_exponentials(const float* mask, int64_t rows, int64_t key, const Room& r) const {
  const int64_t keys = std::min(kPart, s_.keys - key), width = ceil_div(keys, kTileDepth) * kTileDepth;
  const int tiles = rows > kTileRows ? 2 : 1;
  for (int64_t row = 0; row < rows; row++) {
    float* own = r.exponentials + row * width;
    const float* tile = r.scores + row / kTileRows * 2 * kSums + row % kTileRows * kTileColumns;
    for (int64_t k = 0; k < width; k += kTileColumns)
      std::memcpy(own + k, tile + k / kPair * 2 * tiles * kSums + k / kTileColumns % 2 * kSums,
                  kTileColumns * sizeof *own);
    uint32_t beyond = 0;
#pragma omp simd reduction(| : beyond)
    for (int64_t k = 0; k < keys; k++) beyond |= (bits_of(own[k]) & kExponent) == kExponent;
    if (beyond != 0) return false;
    const float scale = s_.scale;
    float largest = r.largest[row];
    if (mask) {
      const float* from = mask + row * s_.mask.line + key * s_.mask.element;
      const int64_t step = s_.mask.element;
      if (step == 1) {
#pragma omp simd
        for (int64_t k = 0; k < keys; k++) own[k] = own[k] * scale + from[k];
      } else {
        for (int64_t k = 0; k < keys; k++) own[k] = own[k] * scale + from[k * step];
      }
    } else {
#pragma omp simd
      for (int64_t k = 0; k < keys; k++) own[k] *= scale;
    }
    // By lanes: not every compiler makes vectors of a maximum that passes over what is no number.
    std::fill(own + keys, own + width, -kInfinity);
    alignas(64) float most[kTileColumns];
    std::fill(most, most + kTileColumns, largest);
    for (int64_t k = 0; k < width; k += kTileColumns)
#pragma omp simd
      for (int c = 0; c < kTileColumns; c++) most[c] = own[k + c] > most[c] ? own[k + c] : most[c];
    for (const float other : most) largest = other > largest ? other : largest;
    // Where all scores up to here are masked, exponentials are zero: of a line that stays so nothing is made.
    const float base = largest == -kInfinity ? 0.0f : largest;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < keys; k++) {
      own[k] = gopt_exp(own[k] - base);
      sum += own[k];
    }
    std::fill(own + keys, own + width, 0.0f);
    r.factor[row] = gopt_exp(r.largest[row] - base);
    r.sum[row] = r.sum[row] * r.factor[row] + sum;
    r.largest[row] = largest;
    if (s_.keys <= kPart && sum > 0) {
      const float share = 1 / sum;
#pragma omp simd
      for (int64_t k = 0; k < keys; k++) own[k] *= share;
      r.sum[row] = 1;
    }
  }
  for (int64_t block = 0; block < width / kTileDepth; block++)
    split_function(terms_)({r.exponentials + block * kTileDepth, width, 1, kTileColumns, rows, kTileDepth,
                            r.terms + block * kRows * line(), line()});
  return true;
}

void AttentionTiles::add_values(int64_t rows, int64_t key, const Room& r) const {
  const int tiles = rows > kTileRows ? 2 : 1;
  const int64_t blocks = ceil_div(std::min(kPart, s_.keys - key), kTileDepth), width = value_pairs_ * kPair;
  for (int64_t pair = 0; pair < value_pairs_; pair++) {
    const uint16_t* values = r.values + (pair * key_blocks_ + key / kTileDepth) * terms_ * 2 * kTileElements;
    multiply(r.terms, blocks, values, tiles, r.sums);
    for (int64_t row = 0; row < rows; row++)
      for (int64_t half = 0; half < 2; half++) {
        const float* sums = r.sums + (row / kTileRows * 2 + half) * kSums + row % kTileRows * kTileColumns;
        float* to = r.result + row * width + pair * kPair + half * kTileColumns;
        const float factor = key == 0 ? 0.0f : r.factor[row];
        for (int c = 0; c < kTileColumns; c++) to[c] = key == 0 ? sums[c] : to[c] * factor + sums[c];
      }
  }
}

void AttentionTiles::put_line(const float* from, void* result, int64_t line) const {
  const int64_t at = line * s_.result.line;
  if (s_.result_element == Element::Float)
    std::copy(from, from + s_.value_depth, static_cast<float*>(result) + at);
  else
    std::transform(from, from + s_.value_depth, static_cast<uint16_t*>(result) + at, half_of);
}

// A sum of 0 is that of a line that is masked whole.
void AttentionTiles::store(int64_t rows, void* result, const Room& r) const {
  const float nothing = s_.nan_is_zero ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  for (int64_t row = 0; row < rows; row++) {
    const float factor = r.sum[row] > 0 ? 1 / r.sum[row] : nothing;
    float* own = r.result + row * value_pairs_ * kPair;
    for (int64_t d = 0; d < s_.value_depth; d++) own[d] = factor == 0 ? 0.0f : own[d] * factor;
    put_line(own, result, row);
  }
}

// ---- matrices ----

// All lines are computed, and these are stored.
void AttentionTiles::compute_in_floats(const Operands& from, int64_t first_row, int64_t last_row, const Room& r) const {
  const auto gather = [&](const void* data, const AttentionMatrices& m, int64_t lines, int64_t depth, float* to) {
    for (int64_t i = 0; i < lines; i++)
      for (int64_t d = 0; d < depth; d++) *to++ = value_at(data, s_.operands, i * m.line + d * m.element);
  };
  gather(from.query, s_.query, s_.rows, s_.depth, r.query);
  gather(from.key, s_.key, s_.keys, s_.depth, r.key);
  gather(from.value, s_.value, s_.keys, s_.value_depth, r.value);
  in_floats_.run({r.query, r.key, r.value, from.mask, nullptr, nullptr, r.made}, r.rows);
  for (int64_t i = first_row; i < last_row; i++) put_line(r.made + i * s_.value_depth, from.result, i);
}

bool AttentionTiles::compute_on_tiles(const Operands& from, int64_t first_row, int64_t last_row, const Room& r) const {
  if (std::max(pack_keys(from.key, r), pack_values(from.value, r)) >= kRoundsToInfinity) return false;
  for (int64_t row = first_row; row < last_row; row += kRows) {
    const int64_t rows = std::min(kRows, last_row - row);
    const int tiles = rows > kTileRows ? 2 : 1;
    const void* query = at_element(from.query, s_.operands, row * s_.query.line);
    if (pack_queries(query, rows, r) >= kRoundsToInfinity) return false;
    std::fill(r.largest, r.largest + kRows, -kInfinity);
    std::fill(r.sum, r.sum + kRows, 0.0f);
    for (int64_t key = 0; key < s_.keys; key += kPart) {
      const int64_t pairs = ceil_div(std::min(kPart, s_.keys - key), kPair);
      for (int64_t pair = 0; pair < pairs; pair++)
        multiply(r.queries, blocks_, r.keys + (key / kPair + pair) * blocks_ * terms_ * 2 * kTileElements, tiles,
                 r.scores + pair * 2 * tiles * kSums);
      if (!take_exponentials(from.mask ? from.mask + row * s_.mask.line : nullptr, rows, key, r)) return false;
      add_values(rows, key, r);
    }
    store(rows, const_cast<void*>(at_element(from.result, s_.result_element, row * s_.result.line)), r);
  }
  return true;
}

void AttentionTiles::compute(const Operands& from, int64_t first_row, int64_t last_row, const Room& r) const {
  if (!has_unit_ || !compute_on_tiles(from, first_row, last_row, r)) compute_in_floats(from, first_row, last_row, r);
}

void AttentionTiles::run(const void* query, const void* key, const void* value, const float* mask, void* result,
                         void* scratch) const {
  const int64_t all = matrices_of(s_) * groups_, blocks = ceil_div(s_.rows, kRows);
  const size_t each = scratch_bytes() / static_cast<size_t>(threads_);
  share_range(all, threads_, [&](int64_t first_task, int64_t last_task, int slot) {
    Room own{};
    divide(static_cast<char*>(scratch) + static_cast<size_t>(slot) * each, own);
    if (has_unit_) begin_tiles(unit_, kTileRows);
    for (int64_t task = first_task; task < last_task; task++) {
      const int64_t matrix = task / groups_, group = task % groups_;
      const int64_t place[3] = {matrix / (s_.batch[1] * s_.batch[2]), matrix / s_.batch[2] % s_.batch[1],
                                matrix % s_.batch[2]};
      const auto at = [&](const AttentionMatrices& m) {
        return m.offset + place[0] * m.batch[0] + place[1] * m.batch[1] + place[2] * m.batch[2];
      };
      const auto row = [&](int64_t part) { return std::min(s_.rows, blocks * part / groups_ * kRows); };
      compute({at_element(query, s_.operands, at(s_.query)), at_element(key, s_.operands, at(s_.key)),
               at_element(value, s_.operands, at(s_.value)), mask ? mask + at(s_.mask) : nullptr,
               const_cast<void*>(at_element(result, s_.result_element, at(s_.result)))},
              row(group), row(group + 1), own);
    }
    if (has_unit_) end_tiles(unit_);
  });
}

}  // namespace gopt_runtime
