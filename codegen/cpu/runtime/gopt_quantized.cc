#include "gopt_quantized.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "gopt_panel_sums.h"
#include "gopt_places.h"
#include "gopt_team.h"
#include "gopt_vector.h"

namespace gopt_runtime {
namespace {

constexpr int kVectors = 4;  // of a panel
constexpr int64_t kWidth = kVectors * kLanes;
constexpr int64_t kMostStep = 128;
constexpr int kRowsAtOnce = kRegisters >= kMostRows ? kMostRows : 8;  // rows whose sums are in registers at once
constexpr int64_t kByte = 8;

// A word of a vector has the numbers of as many rows of one column. Some of them lie within a float's mantissa: under
// the exponent of 2^23 over the number's place they are that power and the number, exactly.
template <int bits>
struct Fields {
  static constexpr int kOfWord = 32 / bits, kInPlace = 23 / bits;
  static constexpr uint32_t mask(int i) { return ((1u << bits) - 1) << (bits * i); }
  static constexpr uint32_t exponent(int i) { return static_cast<uint32_t>(127 + 23 - bits * i) << 23; }
  static constexpr float power(int i) { return static_cast<float>(1 << (23 - bits * i)); }

  static Vector at(const Words& words, int i) {
    const Words number = (words & mask(i)) | exponent(i);
    Vector v;
    std::memcpy(&v, &number, sizeof v);
    return v;
  }
  // take(k, v, number + power(i), i) for each row k of a word and vector v.
  template <int vectors, class Take>
  [[gnu::always_inline]] static void each(Words (&words)[vectors], const Take& take) {
#pragma GCC unroll 8
    for (int k = 0; k < kOfWord; k++) {
      const int i = k % kInPlace;
      if (k > 0 && i == 0) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) words[v] >>= bits * kInPlace;
      }
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) take(k, v, at(words[v], i), i);
    }
  }
};

// What is taken from each number: its power and the zero point. [in place][column].
template <int bits>
using Offsets = float[Fields<bits>::kInPlace][kWidth];

// Where the parts of a step lie.
struct StepForm {
  int64_t step, bytes;
  bool has_zeros;
  const float* scales(const char* at) const { return static_cast<const float*>(static_cast<const void*>(at)); }
  const uint8_t* zeros(const char* at) const {
    return static_cast<const uint8_t*>(static_cast<const void*>(at + kWidth * 4));
  }
  const char* numbers(const char* at) const { return at + kWidth * (has_zeros ? 5 : 4); }
};

template <int bits>
void set_offsets(Offsets<bits>& offsets, const Vector& zero, int64_t column) {
  for (int i = 0; i < Fields<bits>::kInPlace; i++) {
    const Vector offset = zero + Fields<bits>::power(i);
    std::memcpy(offsets[i] + column, &offset, sizeof offset);
  }
}
template <int bits>
void set_offsets(Offsets<bits>& offsets, const uint8_t* zeros) {
  for (int64_t column = 0; column < kWidth; column += kLanes)
    set_offsets<bits>(offsets, load_lanes(zeros + column), column);
}
template <int bits>
void set_offsets(Offsets<bits>& offsets, int zero) {
  for (int64_t column = 0; column < kWidth; column += kLanes)
    set_offsets<bits>(offsets, Vector{} + static_cast<float>(zero), column);
}

template <int vectors>
[[gnu::always_inline]] inline void load_words(const char* from, Words (&words)[vectors]) {
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++)
    std::memcpy(&words[v], from + v * static_cast<int64_t>(sizeof(Words)), sizeof(Words));
}

struct PanelOperands {
  const float* src;  // [depth in whole steps][rows]
  const char* packed;
  int64_t steps;
  StepForm form;
  int zero;
};

// One row or two are summed up step by step, and their sums multiplied by the scales: a multiplication a number less.
constexpr bool sums_steps(int rows) { return rows <= 2; }
// Registers for sums: numbers become floats by constants, which are in the others.
constexpr int kSums = kRegisters >= 16 ? 16 : 8;
constexpr int vectors_of(int rows) {
  const int vectors = (sums_steps(rows) ? kSums / 2 : kSums - 1) / rows;
  return vectors >= 4 ? 4 : vectors >= 2 ? 2 : 1;
}

// Sums of all rows at some vectors of a panel's columns.
template <int bits, int rows, int vectors>
void compute_vectors(const PanelOperands& o, int64_t column, float* sums) {
  using F = Fields<bits>;
  alignas(64) Offsets<bits> offsets;
  if (!o.form.has_zeros) set_offsets<bits>(offsets, o.zero);
  Vector s[rows][vectors];
  clear_sums(s);
  const auto add = [&](int64_t number) {
    const char* at = o.packed + number * o.form.bytes;
    if (o.form.has_zeros) set_offsets<bits>(offsets, o.form.zeros(at));
    const float *scales = o.form.scales(at) + column, *x = o.src + number * o.form.step * rows;
    const char* words_at = o.form.numbers(at) + column * 4;
    Vector own[sums_steps(rows) ? rows : 1][vectors];
    clear_sums(own);
    for (int64_t k = 0; k < o.form.step; k += F::kOfWord, x += F::kOfWord * rows, words_at += kWidth * 4) {
      Words words[vectors];
      load_words(words_at, words);
      F::each(
          words, [&](int row, int v, const Vector& raised, int i) __attribute__((always_inline)) {
            const Vector weight = raised - load(offsets[i] + column + v * kLanes);
            if constexpr (sums_steps(rows)) {
#pragma GCC unroll 16
              for (int r = 0; r < rows; r++) own[r][v] += (x[row * rows + r] - Vector{}) * weight;
            } else {
              const Vector scaled = weight * load(scales + v * kLanes);
#pragma GCC unroll 16
              for (int r = 0; r < rows; r++) s[r][v] += (x[row * rows + r] - Vector{}) * scaled;
            }
          });
    }
    if constexpr (sums_steps(rows))
#pragma GCC unroll 16
      for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) s[r][v] += own[r][v] * load(scales + v * kLanes);
  };
  take_large_in_places(o.packed, o.steps, o.form.bytes, add);
  keep_sums(s, sums + column, kWidth);
}
template <int bits, int rows>
void compute_panel(const PanelOperands& o, float* sums) {
  constexpr int vectors = vectors_of(rows);
  for (int64_t column = 0; column < kWidth; column += vectors * kLanes)
    compute_vectors<bits, rows, vectors>(o, column, sums);
}

using ComputePanel = void (*)(const PanelOperands&, float*);
template <int bits, int... rows>
constexpr std::array<ComputePanel, sizeof...(rows)> functions_of(std::integer_sequence<int, rows...>) {
  return {compute_panel<bits, rows + 1>...};
}
ComputePanel panel_function(int bits, int64_t rows) {
  using All = std::make_integer_sequence<int, kRowsAtOnce>;
  static constexpr auto kOfFour = functions_of<4>(All()), kOfEight = functions_of<8>(All());
  return (bits == 4 ? kOfFour : kOfEight)[static_cast<size_t>(rows - 1)];
}

// A step as floats, a line of two panels each (gopt_panel_sums.h).
template <int bits>
void widen_step(const StepForm& form, const char* at, int zero, int64_t rows, float* to, int64_t panel_floats) {
  using F = Fields<bits>;
  alignas(64) Offsets<bits> offsets;
  if (form.has_zeros)
    set_offsets<bits>(offsets, form.zeros(at));
  else
    set_offsets<bits>(offsets, zero);
  const char* words_at = form.numbers(at);
  for (int64_t k = 0; k < rows; k += F::kOfWord, words_at += kWidth * 4) {
    Words words[kVectors];
    load_words(words_at, words);
    F::each(words, [&](int row, int v, const Vector& raised, int i) {
      if (k + row >= rows) return;
      const Vector weight = (raised - load(offsets[i] + v * kLanes)) * load(form.scales(at) + v * kLanes);
      float* line = to + v / kPanelVectors * panel_floats + (k + row) * kPanelWidth + v % kPanelVectors * kLanes;
      std::memcpy(line, &weight, sizeof weight);
    });
  }
}

// Of a block the largest part that divides it, of several groups; where all have one, the last part may be shorter.
int64_t step_of(const QuantizedShape& s) {
  const int64_t depth = ceil_div(s.depth, kQuantizedRows) * kQuantizedRows;
  if (s.block >= s.depth) return std::min(depth, kMostStep);
  int64_t step = std::min(s.block, kMostStep);
  while (s.block % step != 0 || step % kQuantizedRows != 0) step--;
  return step;
}

// Numbers as they are packed begin with 0.
template <class Number>
void put_line(const Number* __restrict from, int64_t step, int64_t count, int least, int shift,
              uint32_t* __restrict line) {
  const auto packed = [=](Number number) { return static_cast<uint32_t>(number - least) << shift; };
  if (step == 1)
#pragma omp simd
    for (int64_t i = 0; i < count; i++) line[i] |= packed(from[i]);
  else
    for (int64_t i = 0; i < count; i++) line[i] |= packed(from[i * step]);
}

}  // namespace

QuantizedProduct::QuantizedProduct(const QuantizedShape& shape, const QuantizedWeights& weights,
                                   std::vector<Post> posts, int threads, Element result)
    : s_(shape),
      w_(weights),
      step_(step_of(shape)),
      steps_(ceil_div(shape.depth, step_)),
      step_bytes_(kWidth * (weights.zeros ? 5 : 4) + step_ * kWidth * shape.bits / kByte),
      panel_bytes_(steps_ * step_bytes_),
      panels_(ceil_div(shape.columns, kWidth)),
      result_(shape.columns, std::move(posts), result),
      threads_(threads) {
  // Where the sums of all rows are not in registers at once, numbers would become floats several times.
  constexpr int64_t kOrder = 16;
  if (s_.rows > kRowsAtOnce)
    by_floats_.emplace(PanelShape{1, 1, s_.rows, s_.depth, kWidth, 0, 1}, TileOrder{0, s_.depth, kOrder, 1},
                       TileOrder{0, kWidth, kOrder, 1}, std::vector<Post>{}, 1);
}

std::vector<int64_t> QuantizedProduct::packed_form() const {
  const auto number = [](const void* pointer) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(pointer)); };
  return {kWidth,      s_.bits,           s_.block,     w_.is_signed ? 1 : 0, w_.row,
          w_.column,   number(w_.scales), w_.scale_row, w_.scale_column,      number(w_.zeros),
          w_.zero_row, w_.zero_column,    w_.zero};
}

int QuantizedProduct::zero_at(int64_t block, int64_t column) const {
  const uint8_t byte = static_cast<const uint8_t*>(w_.zeros)[block * w_.zero_row + column * w_.zero_column];
  return w_.is_signed ? static_cast<int8_t>(byte) - least() : byte;
}

void QuantizedProduct::pack(void* packed) const {
  const StepForm form{step_, step_bytes_, w_.zeros != nullptr};
  const int64_t of_word = 32 / s_.bits;
  share_each(panels_ * steps_, threads_, [&](int64_t part, int) {
    const int64_t panel = part / steps_, first = part % steps_ * step_, column = panel * kWidth;
    const int64_t count = std::min(kWidth, s_.columns - column), rows = std::min(step_, s_.depth - first);
    const int64_t block = first / s_.block;
    char* at = static_cast<char*>(packed) + part * step_bytes_;
    std::memset(at, 0, static_cast<size_t>(step_bytes_));
    auto* scales = static_cast<float*>(static_cast<void*>(at));
    for (int64_t i = 0; i < count; i++) scales[i] = w_.scales[block * w_.scale_row + (column + i) * w_.scale_column];
    if (form.has_zeros)
      for (int64_t i = 0; i < count; i++) at[kWidth * 4 + i] = static_cast<char>(zero_at(block, column + i));
    auto* words = static_cast<uint32_t*>(static_cast<void*>(const_cast<char*>(form.numbers(at))));
    for (int64_t k = 0; k < step_; k++) {
      uint32_t* line = words + k / of_word * kWidth;
      const auto shift = static_cast<int>(k % of_word) * s_.bits;
      const int64_t from = (first + k) * w_.row + column * w_.column;
      if (k < rows && w_.is_signed)
        put_line(static_cast<const int8_t*>(w_.numbers) + from, w_.column, count, least(), shift, line);
      else if (k < rows)
        put_line(static_cast<const uint8_t*>(w_.numbers) + from, w_.column, count, 0, shift, line);
      else  // what fills up the last step is nothing, whatever the scale
        for (int64_t i = 0; i < count; i++)
          line[i] |= static_cast<uint32_t>(form.has_zeros ? zero_at(block, column + i) : common_zero()) << shift;
    }
  });
}

size_t QuantizedProduct::scratch_of_thread() const {
  return static_cast<size_t>(kWidth * (s_.depth + s_.rows)) + by_floats_->scratch_floats();
}
size_t QuantizedProduct::scratch_floats() const {
  return by_floats_ ? static_cast<size_t>(threads_) * scratch_of_thread()
                    : static_cast<size_t>(s_.rows * steps_ * step_);
}

void QuantizedProduct::run(const float* src, const void* packed, const float* bias, void* dst, float* scratch) const {
  if (by_floats_) return run_panels(src, packed, bias, dst, scratch);
  // Of each row of the weights what it is multiplied by, one beside the other.
  for (int64_t r = 0; r < s_.rows; r++)
    for (int64_t k = 0; k < s_.depth; k++) scratch[k * s_.rows + r] = src[r * s_.depth + k];
  std::fill(scratch + s_.depth * s_.rows, scratch + steps_ * step_ * s_.rows, 0.0f);
  const StepForm form{step_, step_bytes_, w_.zeros != nullptr};
  const ComputePanel compute = panel_function(s_.bits, s_.rows);
  share_each(panels_, threads_, [&](int64_t number, int) {
    alignas(64) float sums[kRowsAtOnce * kWidth];
    compute({scratch, panel(packed, number), steps_, form, common_zero()}, sums);
    result_.store(0, s_.rows, number * kWidth, kWidth, sums, bias, dst);
  });
}

void QuantizedProduct::widen(const char* from, float* panels) const {
  const StepForm form{step_, step_bytes_, w_.zeros != nullptr};
  for (int64_t number = 0; number < steps_; number++) {
    const int64_t first = number * step_, rows = std::min(step_, s_.depth - first);
    (s_.bits == 4 ? widen_step<4> : widen_step<8>)(form, from + number * step_bytes_, common_zero(), rows,
                                                   panels + first * kPanelWidth, s_.depth * kPanelWidth);
  }
}

void QuantizedProduct::run_panels(const float* src, const void* packed, const float* bias, void* dst,
                                  float* scratch) const {
  share_each(panels_, threads_, [&](int64_t number, int slot) {
    float *own = scratch + static_cast<size_t>(slot) * scratch_of_thread(), *sums = own + kWidth * s_.depth;
    widen(panel(packed, number), own);
    by_floats_->run(src, own, nullptr, sums, sums + kWidth * s_.rows);
    result_.store(0, s_.rows, number * kWidth, kWidth, sums, bias, dst);
  });
}

}  // namespace gopt_runtime
