#include "gopt_attention_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "gopt_lanes.h"
#include "gopt_math.h"
#include "gopt_team.h"
#include "gopt_transpose.h"

namespace gopt_runtime {
namespace {

constexpr int kMostVectors = kRegisters >= 24 ? 4 : 2, kMostLines = 8;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Lines of the left operand whose sums are made at once.
constexpr int lines_of(int vectors) { return std::min(kMostLines, kRegisters / vectors); }

// A matrix times one whose rows are `vectors` vectors, one after another: of the first, elements `a_step` apart.
struct Factors {
  const float *a, *b;
  int64_t a_line, a_step, depth;
  float* sums;  // rows of vectors, too
};

template <int lines, int vectors, bool adds>
void multiply_lines(const Factors& f) {
  Vector sums[lines][vectors];
#pragma GCC unroll 8
  for (int i = 0; i < lines; i++)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) sums[i][v] = adds ? load(f.sums + (i * vectors + v) * kLanes) : Vector{};
  const float *a = f.a, *b = f.b;
  for (int64_t k = 0; k < f.depth; k++, a += f.a_step, b += vectors * kLanes) {
    Vector right[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) right[v] = load(b + v * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < lines; i++) {
      const Vector left = a[i * f.a_line] - Vector{};
#pragma GCC unroll 8
      for (int v = 0; v < vectors; v++) sums[i][v] += left * right[v];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < lines; i++)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) std::memcpy(f.sums + (i * vectors + v) * kLanes, &sums[i][v], sizeof(Vector));
}

using MultiplyLines = void (*)(const Factors&);
template <int vectors, bool adds, int... lines>
MultiplyLines function_for(int64_t count, std::integer_sequence<int, lines...>) {
  static constexpr std::array<MultiplyLines, sizeof...(lines)> kFunctions{multiply_lines<lines + 1, vectors, adds>...};
  return kFunctions[static_cast<size_t>(count - 1)];
}

template <int vectors, bool adds>
void multiply(Factors f, int64_t lines) {
  constexpr int kBlock = lines_of(vectors);
  for (int64_t first = 0, left = (lines + kBlock - 1) / kBlock; first < lines; left--) {
    const int64_t count = (lines - first + left - 1) / left;
    function_for<vectors, adds>(count, std::make_integer_sequence<int, kBlock>())(f);
    f.a += count * f.a_line;
    f.sums += count * vectors * kLanes;
    first += count;
  }
}

// What is known of each line of the query, a lane each, while its keys are looked at.
template <int vectors>
struct Softmax {
  static constexpr int kWidth = vectors * kLanes;
  alignas(64) float largest[kWidth], sum[kWidth], factor[kWidth];
};

// Scores times the scale, with the mask; `mask` of a key is `step` after that of the one before, and has a number for
// each lane or one for all.
template <int vectors, bool for_each_lane>
void scale_scores(float* scores, int64_t keys, float scale, const float* mask, int64_t step, float* largest) {
  constexpr int kWidth = vectors * kLanes;
  for (int64_t k = 0; k < keys; k++, scores += kWidth, mask += step) {
#pragma omp simd
    for (int i = 0; i < kWidth; i++) {
      const float score = scores[i] * scale + (for_each_lane ? mask[i] : *mask);
      scores[i] = score;
      largest[i] = score > largest[i] ? score : largest[i];
    }
  }
}

// Scores times the scale, or the number in their place. `choices` of a key are `step` after those of the one before,
// and have a number for each lane or one for all: 1 where scores are kept.
template <int vectors, bool for_each_lane>
void choose_scores(float* scores, int64_t keys, float scale, float otherwise, const float* choices, int64_t step) {
  constexpr int kWidth = vectors * kLanes;
  for (int64_t k = 0; k < keys; k++, scores += kWidth, choices += step) {
#pragma omp simd
    for (int i = 0; i < kWidth; i++) {
      const float scaled = scores[i] * scale;
      scores[i] = (for_each_lane ? choices[i] : *choices) != 0 ? scaled : otherwise;
    }
  }
}

// Truth values as numbers: 1 where they are what is kept.
void take_choices(const uint8_t* from, int64_t step, int64_t count, bool kept, float* to) {
  if (step == 1) {
#pragma omp simd
    for (int64_t k = 0; k < count; k++) to[k] = (from[k] != 0) == kept ? 1.0f : 0.0f;
  } else {
    for (int64_t k = 0; k < count; k++) to[k] = (from[k * step] != 0) == kept ? 1.0f : 0.0f;
  }
}

// Where all scores up to here are masked, exponentials are zero: of a line that stays so nothing is made.
template <int vectors>
void take_exponentials(float* scores, int64_t keys, Softmax<vectors>& lines, const float* before) {
  constexpr int kWidth = vectors * kLanes;
  alignas(64) float from[kWidth];
#pragma omp simd
  for (int i = 0; i < kWidth; i++) {
    from[i] = lines.largest[i] == -kInfinity ? 0.0f : lines.largest[i];
    lines.factor[i] = gopt_exp(before[i] - from[i]);
    lines.sum[i] *= lines.factor[i];
  }
  for (int64_t k = 0; k < keys; k++, scores += kWidth) {
#pragma omp simd
    for (int i = 0; i < kWidth; i++) {
      scores[i] = gopt_exp(scores[i] - from[i]);
      lines.sum[i] += scores[i];
    }
  }
}

// ---- a few lines of the query ----

constexpr int64_t kFewLines = 5;

struct Lines {
  const float* from;
  int64_t line, count, width;  // elements from one to the next; how many; of how many elements
};

// A line by each of `keys`: of as many as there are lanes, sums by lanes, which are turned around to be added up.
// `products` has room for whole vectors.
void multiply_by_lines(const float* query, const Lines& keys, float* products) {
  constexpr int64_t kTogether = 4;
  alignas(64) float sums[kLanes * kLanes] = {}, turned[kLanes * kLanes];
  for (int64_t first = 0; first < keys.count; first += kLanes) {
    const int64_t count = std::min<int64_t>(kLanes, keys.count - first);
    for (int64_t k = 0; k < count; k += kTogether) {
      const float* lines[kTogether];
      for (int64_t i = 0; i < kTogether; i++) lines[i] = keys.from + (first + std::min(k + i, count - 1)) * keys.line;
      Vector own[kTogether] = {};
      for (int64_t d = 0; d < keys.width; d += kLanes) {
        const Vector left = load_lanes(query + d, keys.width - d, Vector{});
#pragma GCC unroll 4
        for (int64_t i = 0; i < kTogether; i++) own[i] += left * load_lanes(lines[i] + d, keys.width - d, Vector{});
      }
      std::memcpy(sums + k * kLanes, own, sizeof own);
    }
    transpose_square(sums, kLanes, turned, kLanes);
    Vector all{};
    for (int64_t i = 0; i < kLanes; i++) all += load(turned + i * kLanes);
    std::memcpy(products + first, &all, sizeof all);
  }
}

// Adds the lines of values, each times its weight, to whole vectors of sums.
template <int vectors>
void add_weighted(const float* weights, const Lines& values, int64_t first, float* sums) {
  Vector own[vectors];
  for (int v = 0; v < vectors; v++) own[v] = load(sums + first + v * kLanes);
  for (int64_t k = 0; k < values.count; k++) {
    const float* line = values.from + k * values.line + first;
    const Vector weight = weights[k] - Vector{};
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      own[v] += weight * load_lanes(line + v * kLanes, values.width - first - v * kLanes, Vector{});
  }
  for (int v = 0; v < vectors; v++) std::memcpy(sums + first + v * kLanes, &own[v], sizeof(Vector));
}
void add_weighted(const float* weights, const Lines& values, float* sums) {
  constexpr int kVectors = 4;
  int64_t first = 0;
  for (; values.width - first > (kVectors - 1) * kLanes; first += kVectors * kLanes)
    add_weighted<kVectors>(weights, values, first, sums);
  for (; first < values.width; first += kLanes) add_weighted<1>(weights, values, first, sums);
}

// Of each lane a row's elements, or an element for all of them; what is there is added to.
void add_to_lanes(const float* from, const AttentionMatrices& m, int64_t rows, int64_t keys, int64_t width, float* to) {
  for (int64_t k = 0; k < keys; k++) {
    const float* const own = from + k * m.element;
    for (int64_t r = 0; r < rows; r++) to[k * width + r] += own[r * m.line];
  }
}

// Scores times the scale, with the mask.
void scale_line(float* scores, int64_t keys, float scale, const float* mask, int64_t step) {
  if (step == 0) {
    const float same = *mask;
#pragma omp simd
    for (int64_t k = 0; k < keys; k++) scores[k] = scores[k] * scale + same;
  } else if (step == 1) {
#pragma omp simd
    for (int64_t k = 0; k < keys; k++) scores[k] = scores[k] * scale + mask[k];
  } else {
    for (int64_t k = 0; k < keys; k++) scores[k] = scores[k] * scale + mask[k * step];
  }
}

// What is known of a line of the query while its keys are looked at.
struct LineSoftmax {
  float largest = -kInfinity, sum = 0;

  // Exponentials of scores less the largest; what sums until here are to be scaled by. There is room for whole vectors.
  float take_exponentials(float* scores, int64_t keys) {
    alignas(64) float most[kLanes], sums[kLanes] = {};
    std::fill(most, most + kLanes, largest);
    std::fill(scores + keys, scores + in_vectors(keys), -kInfinity);
    for (int64_t k = 0; k < keys; k += kLanes) {
#pragma omp simd
      for (int i = 0; i < kLanes; i++) most[i] = scores[k + i] > most[i] ? scores[k + i] : most[i];
    }
    const float before = largest;
    for (const float lane : most) largest = lane > largest ? lane : largest;
    const float from = largest == -kInfinity ? 0.0f : largest, factor = gopt_exp(before - from);
    for (int64_t k = 0; k < keys; k += kLanes) {
#pragma omp simd
      for (int i = 0; i < kLanes; i++) {
        scores[k + i] = gopt_exp(scores[k + i] - from);
        sums[i] += scores[k + i];
      }
    }
    sum *= factor;
    for (const float lane : sums) sum += lane;
    return factor;
  }
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t count_of(const AttentionShape& s) { return s.batch[0] * s.batch[1] * s.batch[2]; }

// The number of vectors a block with which the threads are done first: each block has something to do beside.
int choose_vectors(const AttentionShape& s, int threads) {
  constexpr double kBeside = 0.4;  // vectors
  const int64_t all = ceil_div(s.rows, kLanes);
  int best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int vectors = 1; vectors <= std::min<int64_t>(kMostVectors, all); vectors++) {
    const int64_t rounds = ceil_div(count_of(s) * ceil_div(all, vectors), threads);
    const double time = static_cast<double>(rounds) * (vectors + kBeside);
    if (time <= least) least = time, best = vectors;
  }
  return best;
}

// Matrices of one line of the query along the last axis, which share keys, values and mask, as matrices of as many
// lines: where these fill the lanes or are a few, and all threads still have something to do.
AttentionShape with_lines_together(const AttentionShape& s, int threads) {
  const auto is_shared = [](const AttentionMatrices& m) { return m.batch[2] == 0; };
  const int64_t lines = s.batch[2];
  const bool is_worth =
      s.rows == 1 && lines > 1 && (lines <= kFewLines || 4 * lines >= 3 * kLanes) && s.batch[0] * s.batch[1] >= threads;
  if (!is_worth || !is_shared(s.key) || !is_shared(s.value)) return s;
  if ((s.has_mask && !is_shared(s.mask)) || (s.has_bias && !is_shared(s.bias)) ||
      (s.has_choice && !is_shared(s.choice)))
    return s;
  AttentionShape together = s;
  together.rows = lines;
  together.query.line = s.query.batch[2], together.result.line = s.result.batch[2], together.mask.line = 0,
  together.bias.line = together.choice.line = 0;
  const auto drop_last = [](int64_t(&axes)[3], int64_t first) {
    axes[2] = axes[1], axes[1] = axes[0], axes[0] = first;
  };
  drop_last(together.batch, 1);
  for (AttentionMatrices* m : {&together.query, &together.key, &together.value, &together.result, &together.mask,
                               &together.bias, &together.choice})
    drop_last(m->batch, 0);
  return together;
}

}  // namespace

AttentionRows::AttentionRows(const AttentionShape& shape, int threads)
    : s_(with_lines_together(shape, threads)),
      threads_(threads),
      has_few_(s_.rows <= kFewLines && s_.key.element == 1),
      vectors_(choose_vectors(s_, threads)) {
  constexpr int64_t kScores = 32 * 1024;  // floats of a part
  constexpr int64_t kKeys = 256;          // of a part, which each of a few lines looks at
  const int64_t most = has_few_ ? kKeys : kScores / (vectors_ * kLanes);
  part_ = s_.keys == 0 ? 0 : ceil_div(s_.keys, ceil_div(s_.keys, most));
}

// Lines of the query, a part of the scores and of its mask, and sums.
size_t AttentionRows::floats_a_thread() const {
  if (has_few_) return static_cast<size_t>(in_vectors(part_) + s_.rows * in_vectors(s_.value_depth));
  return static_cast<size_t>((s_.depth + 2 * part_ + s_.value_depth) * vectors_ * kLanes);
}

// A part of the scores times the scale, with the mask and the bias, and the largest of each line.
template <int vectors>
void AttentionRows::mask_scores(const AttentionOperands& from, int64_t first_row, int64_t rows, int64_t key,
                                int64_t keys, float* scores, float* masks, float scale, float* largest) const {
  constexpr int kWidth = vectors * kLanes;
  static constexpr float kNone = 0;
  if (!(from.mask && s_.mask.line != 0) && !from.bias)
    return scale_scores<vectors, false>(scores, keys, scale, from.mask ? from.mask + key * s_.mask.element : &kNone,
                                        from.mask ? s_.mask.element : 0, largest);
  const float* own = from.mask + first_row * s_.mask.line + key * s_.mask.element;
  if (s_.mask.element == 1 && s_.mask.line != 0) {
    transpose(own, s_.mask.line, masks, kWidth, rows, keys);
  } else {
    for (int64_t k = 0; k < keys; k++)
      for (int64_t r = 0; r < rows; r++) masks[k * kWidth + r] = own[r * s_.mask.line + k * s_.mask.element];
  }
  if (from.bias)
    add_to_lanes(from.bias + first_row * s_.bias.line + key * s_.bias.element, s_.bias, rows, keys, kWidth, masks);
  scale_scores<vectors, true>(scores, keys, scale, masks, kWidth, largest);
}

template <int vectors>
void AttentionRows::choose_scores(const AttentionOperands& from, int64_t first_row, int64_t rows, int64_t key,
                                  int64_t keys, float* scores, float* choices, float scale) const {
  constexpr int kWidth = vectors * kLanes;
  constexpr int64_t kTogether = 128;  // keys
  const uint8_t* own = from.choice + first_row * s_.choice.line;
  float lines[kTogether * kWidth];
  for (int64_t first = 0; first < keys; first += kTogether, scores += kTogether * kWidth) {
    const int64_t count = std::min(kTogether, keys - first);
    const uint8_t* const start = own + (key + first) * s_.choice.element;
    if (s_.choice.line == 0) {
      take_choices(start, s_.choice.element, count, s_.kept, lines);
      gopt_runtime::choose_scores<vectors, false>(scores, count, scale, s_.otherwise, lines, 1);
      continue;
    }
    for (int64_t r = 0; r < rows; r++)
      take_choices(start + r * s_.choice.line, s_.choice.element, count, s_.kept, lines + r * kTogether);
    transpose(lines, kTogether, choices, kWidth, rows, count);
    gopt_runtime::choose_scores<vectors, true>(scores, count, scale, s_.otherwise, choices, kWidth);
  }
}

template <int vectors>
void AttentionRows::compute(const AttentionOperands& from, int64_t first_row, int64_t rows, float* scratch) const {
  constexpr int kWidth = vectors * kLanes;
  float *const query = scratch, *const scores = query + s_.depth * kWidth, *const masks = scores + part_ * kWidth,
               *const sums = masks + part_ * kWidth;
  if (rows < kWidth) std::fill(query, query + s_.depth * kWidth, 0.0f);
  transpose(from.query + first_row * s_.query.line, s_.query.line, query, kWidth, rows, s_.depth);
  Softmax<vectors> lines;
  std::fill(std::begin(lines.largest), std::end(lines.largest), -kInfinity);
  std::fill(std::begin(lines.sum), std::end(lines.sum), 0.0f);
  // Of lanes without a line.
  const bool has_row_masks = (from.mask && s_.mask.line != 0) || from.bias || (from.choice && s_.choice.line != 0);
  if (has_row_masks && rows < kWidth) std::fill(masks, masks + part_ * kWidth, 0.0f);
  for (int64_t key = 0; key < s_.keys; key += part_) {
    const int64_t keys = std::min(part_, s_.keys - key);
    multiply<vectors, false>({from.key + key * s_.key.line, query, s_.key.line, s_.key.element, s_.depth, scores},
                             keys);
    alignas(64) float before[kWidth];
    std::copy(std::begin(lines.largest), std::end(lines.largest), before);
    const bool is_chosen_first = from.choice && !s_.chooses_last, is_chosen_last = from.choice && s_.chooses_last;
    if (is_chosen_first) choose_scores<vectors>(from, first_row, rows, key, keys, scores, masks, s_.scale);
    const float scale = is_chosen_first ? 1 : s_.scale;
    if (is_chosen_last) {
      alignas(64) float unused[kWidth];
      std::copy(std::begin(lines.largest), std::end(lines.largest), unused);
      mask_scores<vectors>(from, first_row, rows, key, keys, scores, masks, scale, unused);
      choose_scores<vectors>(from, first_row, rows, key, keys, scores, masks, 1);
      static constexpr float kNone = 0;
      scale_scores<vectors, false>(scores, keys, 1, &kNone, 0, lines.largest);
    } else {
      mask_scores<vectors>(from, first_row, rows, key, keys, scores, masks, scale, lines.largest);
    }
    take_exponentials<vectors>(scores, keys, lines, before);
    const Factors weighted{from.value + key * s_.value.line, scores, 1, s_.value.line, keys, sums};
    if (key == 0) {
      multiply<vectors, false>(weighted, s_.value_depth);
      continue;
    }
    for (int64_t d = 0; d < s_.value_depth; d++)
      for (int i = 0; i < kWidth; i++) sums[d * kWidth + i] *= lines.factor[i];
    multiply<vectors, true>(weighted, s_.value_depth);
  }
  // A sum of 0 is that of a line that is masked whole.
  const float nothing = s_.nan_is_zero ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  for (int i = 0; i < kWidth; i++) lines.factor[i] = lines.sum[i] > 0 ? 1 / lines.sum[i] : nothing;
  for (int64_t d = 0; d < s_.value_depth; d++)
    for (int i = 0; i < kWidth; i++) {
      float& own = sums[d * kWidth + i];
      own = lines.factor[i] == 0 ? 0.0f : own * lines.factor[i];
    }
  transpose(sums, kWidth, from.result + first_row * s_.result.line, s_.result.line, s_.value_depth, rows);
}

// Of one line, as compute() has them.
void AttentionRows::score_line(const AttentionOperands& from, int64_t row, int64_t key, int64_t keys,
                               float* scores) const {
  const auto choose = [&](float scale) {
    const uint8_t* own = from.choice + row * s_.choice.line + key * s_.choice.element;
#pragma omp simd
    for (int64_t k = 0; k < keys; k++)
      scores[k] = (own[k * s_.choice.element] != 0) == s_.kept ? scores[k] * scale : s_.otherwise;
  };
  static constexpr float kNone = 0;
  const bool is_chosen_first = from.choice && !s_.chooses_last;
  if (is_chosen_first) choose(s_.scale);
  const float* mask = from.mask ? from.mask + row * s_.mask.line + key * s_.mask.element : &kNone;
  if (from.mask || !is_chosen_first)
    scale_line(scores, keys, is_chosen_first ? 1 : s_.scale, mask, from.mask ? s_.mask.element : 0);
  if (from.bias) scale_line(scores, keys, 1, from.bias + row * s_.bias.line + key * s_.bias.element, s_.bias.element);
  if (from.choice && s_.chooses_last) choose(1);
}

void AttentionRows::compute_few(const AttentionOperands& from, float* scratch) const {
  const int64_t width = in_vectors(s_.value_depth);
  float *const scores = scratch, *const sums = scores + in_vectors(part_);
  std::fill(sums, sums + s_.rows * width, 0.0f);
  LineSoftmax lines[kFewLines];
  for (int64_t key = 0; key < s_.keys; key += part_) {
    const int64_t keys = std::min(part_, s_.keys - key);
    for (int64_t row = 0; row < s_.rows; row++) {
      multiply_by_lines(from.query + row * s_.query.line, {from.key + key * s_.key.line, s_.key.line, keys, s_.depth},
                        scores);
      score_line(from, row, key, keys, scores);
      const float factor = lines[row].take_exponentials(scores, keys);
      float* const own = sums + row * width;
      if (key > 0)
        for (int64_t d = 0; d < width; d++) own[d] *= factor;
      add_weighted(scores, {from.value + key * s_.value.line, s_.value.line, keys, s_.value_depth}, own);
    }
  }
  const float nothing = s_.nan_is_zero ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  for (int64_t row = 0; row < s_.rows; row++) {
    const float factor = lines[row].sum > 0 ? 1 / lines[row].sum : nothing;
    float* const result = from.result + row * s_.result.line;
    for (int64_t d = 0; d < s_.value_depth; d++) result[d] = factor == 0 ? 0.0f : sums[row * width + d] * factor;
  }
}

void AttentionRows::compute(int vectors, const AttentionOperands& from, int64_t first_row, int64_t rows,
                            float* scratch) const {
  switch (vectors) {
    case 1: return compute<1>(from, first_row, rows, scratch);
    case 2: return compute<2>(from, first_row, rows, scratch);
    case 3: return compute<std::min(3, kMostVectors)>(from, first_row, rows, scratch);
    default: return compute<kMostVectors>(from, first_row, rows, scratch);
  }
}

void AttentionRows::run(const AttentionOperands& all, void* scratch) const {
  const int64_t width = has_few_ ? s_.rows : vectors_ * kLanes, blocks = ceil_div(s_.rows, width);
  share_each(count_of(s_) * blocks, threads_, [&](int64_t task, int slot) {
    const int64_t matrix = task / blocks, first_row = task % blocks * width;
    const int64_t place[3] = {matrix / (s_.batch[1] * s_.batch[2]), matrix / s_.batch[2] % s_.batch[1],
                              matrix % s_.batch[2]};
    const auto at = [&](const AttentionMatrices& m) {
      return m.offset + place[0] * m.batch[0] + place[1] * m.batch[1] + place[2] * m.batch[2];
    };
    const int64_t rows = std::min(width, s_.rows - first_row);
    if (s_.keys == 0) {  // a sum of nothing
      float* const lines = all.result + at(s_.result) + first_row * s_.result.line;
      for (int64_t row = 0; row < rows; row++) std::fill_n(lines + row * s_.result.line, s_.value_depth, 0.0f);
      return;
    }
    const AttentionOperands from{all.query + at(s_.query),
                                 all.key + at(s_.key),
                                 all.value + at(s_.value),
                                 all.mask ? all.mask + at(s_.mask) : nullptr,
                                 all.bias ? all.bias + at(s_.bias) : nullptr,
                                 all.choice ? all.choice + at(s_.choice) : nullptr,
                                 all.result + at(s_.result)};
    float* const own = static_cast<float*>(scratch) + static_cast<size_t>(slot) * floats_a_thread();
    if (has_few_) return compute_few(from, own);
    compute(static_cast<int>(ceil_div(rows, kLanes)), from, first_row, rows, own);
  });
}

}  // namespace gopt_runtime
