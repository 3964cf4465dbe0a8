// What gopt_integer.cc is made of: sums of tiles, and what a row of sums is stored as.
#pragma once

#include "gopt_integer.h"

namespace gopt_runtime::integers {

constexpr int64_t kLanes = 16;       // sums of a vector
constexpr int64_t kMostVectors = 4;  // of a panel of columns
constexpr int64_t kPanel = kMostVectors * kLanes;
constexpr int64_t kMostRows = 12, kMostSums = 24 * kLanes;  // of a tile

// Sums of so many rows by a panel's columns, from weights in their order: of each run and four of its bytes, four of
// each column.
using SumTile = void (*)(const uint8_t* const* rows, const std::vector<int64_t>& runs, int64_t quads,
                         const int8_t* weights, int32_t* sums);
struct TileKind {
  int64_t rows;
  SumTile sum;
};
// Of a panel of so many vectors, those of the most rows first; the last is of one.
const TileKind* tile_kinds(int64_t vectors);

// Products of each channel's own image, of as many positions as are summed together, at kLanes channels.
constexpr int64_t kTogether = 4;
void sum_channels(const uint8_t* const* rows, const std::vector<int64_t>& runs, int64_t channel, int64_t count,
                  const int32_t* weights, int64_t stride, int32_t* sums);

// A part of a row of the result: `width` sums, of which `count` are stored.
struct Columns {
  const int32_t *corrections, *zeros;
  const float *scale, *bias, *second_bias;
  int64_t width, count;
};
struct Results {
  const IntegerResult& first;
  const IntegerSecond& second;
  const void* addend;  // null: none
  void* dst;
};
// Rows of sums, one after another, as parts of rows of the result, `stride` elements apart from `at` on. `row_sums`: of
// what they are made of, where zero points of weights ask for it; else null.
void store_rows(const int32_t* sums, int64_t rows, const Columns& columns, const Results& results,
                const int32_t* row_sums, int64_t at, int64_t stride);

}  // namespace gopt_runtime::integers
