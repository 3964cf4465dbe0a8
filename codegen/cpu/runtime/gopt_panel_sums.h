// What products by panels (gopt_panels.h) and convolutions of blocks (gopt_blocks.h, gopt_winograd.h) have in common:
// weights in panels of two vectors of columns, sums of a few rows by a panel in registers, and what is done to these as
// they are stored.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "gopt_vector.h"

namespace gopt_runtime {

constexpr int kPanelVectors = 2, kPanelWidth = kPanelVectors * kLanes;
// Whose sums are in registers. No more than there are general registers for the places of as many rows: with 14 some of
// these were read from memory at each step, which took 5 to 10 % (Intel, AVX-512).
constexpr int kMostPanelRows = kRegisters / kPanelVectors < 12 ? kRegisters / kPanelVectors : 12;
constexpr int64_t kLine = 16;  // floats that are fetched at once

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What is done with sums that are in registers: whole vectors are added to (null: nothing), cut off from below (never
// NaN) and stored.
struct SumStore {
  float* to;
  const float* added;
  int64_t row, vector;  // elements from one to the next, of both
  float least;
};

template <int rows, int vectors>
[[gnu::always_inline]] inline void clear_sums(Vector (&sums)[rows][vectors]) {
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) sums[r][v] = Vector{};
}

// As they are: rows of `to` are so many elements apart.
template <int rows, int vectors>
[[gnu::always_inline]] inline void keep_sums(const Vector (&sums)[rows][vectors], float* to, int64_t row) {
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) std::memcpy(to + r * row + v * kLanes, &sums[r][v], sizeof(Vector));
}

// `start_row`: elements of `start` from one row to the next.
template <int rows, int vectors>
[[gnu::always_inline]] inline void load_sums(Vector (&sums)[rows][vectors], const float* start, int64_t start_row) {
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) sums[r][v] = load(start + r * start_row + v * kLanes);
}

// Where a row's numbers lie. Of rows that are a vector apart, as positions of blocks of so many channels are, one
// pointer is enough: what counts beside the products is the number of instructions, above all where another thread of
// the processor's core is at work.
template <int rows>
struct ScatteredRows {
  const float* first[rows];
  [[gnu::always_inline]] const float* at(int row) const { return first[row]; }
};
// `row`: elements from one to the next.
template <int rows>
[[gnu::always_inline]] inline ScatteredRows<rows> rows_apart(const float* src, int64_t row) {
  ScatteredRows<rows> x;
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++) x.first[r] = src + r * row;
  return x;
}
template <int rows>
struct AdjacentRows {
  const float* first;
  [[gnu::always_inline]] const float* at(int row) const { return first + row * kLanes; }
};

// One line of a panel, from `w` on, by a number of each row.
template <int rows, int vectors, class Rows>
[[gnu::always_inline]] inline void add_line(Vector (&sums)[rows][vectors], const Rows& x, int64_t at, const float* w) {
  Vector column[vectors];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) column[v] = load(w + v * kLanes);
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++) {
    const Vector value = x.at(r)[at] - Vector{};
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) sums[r][v] += value * column[v];
  }
}

// What is asked for while a panel is multiplied by: so many lines of floats from `at` on with each of its groups of
// lines, of which a vector's lanes are one; then `at` goes on by `step` elements. Nothing where `at` is null.
struct Ahead {
  const float* at = nullptr;
  int64_t lines = 0, step = 0;
};

// The share of a panel of so many groups, asked for by block number `turn` of `turns` that are multiplied by the one
// before it. Asked for at once, its lines would be more than a core waits for at a time, and the block would wait, too.
inline Ahead share_of_panel(const float* panel, int64_t groups, int64_t turn, int64_t turns) {
  constexpr int64_t kOfGroup = kLanes * kPanelWidth / kLine;
  const int64_t lines = ceil_div(kOfGroup, turns);
  if (!panel || turn * lines >= kOfGroup) return {};
  return {panel + turn * lines * groups * kLine, lines, lines * kLine};
}

// Of numbers of each row from x.at(row) + at on by a group of lines of a panel, from `w` on, which goes on.
template <int locality = 3, int rows, int vectors, class Rows>
[[gnu::always_inline]] inline void add_products(Vector (&sums)[rows][vectors], const Rows& x, int64_t at,
                                                const float*& w, Ahead& ahead) {
  if (ahead.at) {
    for (int64_t k = 0; k < ahead.lines; k++) __builtin_prefetch(ahead.at + k * kLine, 0, locality);
    ahead.at += ahead.step;
  }
#pragma GCC unroll 16
  for (int k = 0; k < kLanes; k++) add_line(sums, x, at + k, w + k * vectors * kLanes);
  w += vectors * kLanes * kLanes;
}

template <int rows, int vectors>
[[gnu::always_inline]] inline void store_sums(Vector (&sums)[rows][vectors], const SumStore& store) {
  if (store.added)
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) sums[r][v] += load(store.added + r * store.row + v * store.vector);
  const Vector least = Vector{} + store.least;
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
      const Vector kept = sums[r][v] < least ? least : sums[r][v];
      std::memcpy(store.to + r * store.row + v * store.vector, &kept, sizeof kept);
    }
}

// Loop::multiply<rows, vectors>(operands, store) for so many rows, up to kMostPanelRows, and vectors.
template <class Loop>
class MultiplyFunctions {
 public:
  using Function = void (*)(const typename Loop::Operands&, const SumStore&);
  static Function of(int64_t rows, int vectors) {
    using All = std::make_integer_sequence<int, kMostPanelRows>;
    static constexpr auto kWhole = all<kPanelVectors>(All()), kHalf = all<1>(All());
    return (vectors == kPanelVectors ? kWhole : kHalf)[static_cast<size_t>(rows - 1)];
  }

 private:
  template <int vectors, int... rows>
  static constexpr std::array<Function, sizeof...(rows)> all(std::integer_sequence<int, rows...>) {
    return {Loop::template multiply<rows + 1, vectors>...};
  }
};

}  // namespace gopt_runtime
