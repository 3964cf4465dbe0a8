// Products of bfloat16 tiles: by the processor's matrix unit (AMX), or by code that computes just what that does,
// rounding for rounding, for tests on other processors.
#pragma once

#include <cstdint>

#include "gopt_amx.h"

namespace gopt_runtime {

constexpr int kTileRows = 16, kTileColumns = 16, kTileDepth = 32;
constexpr int kTileElements = kTileRows * kTileDepth;  // of an operand; of sums: kTileRows * kTileColumns
constexpr int kMostTerms = 3;

enum class TileUnit { Amx, Emulated };  // Amx: where has_amx()

// A product of up to two tiles of rows by up to two of columns, summed over blocks of channels and taps. Floats are
// sums of terms, and of the products of terms those are summed whose ranks differ from the first by less than there
// are terms: x1 w1; x2 w1 + x1 w1 + x1 w2; or, the least first, x3 w1 + x2 w1 + x2 w2 + x1 w2 + x1 w3 + x1 w1.
struct TileProduct {
  const uint16_t* x;    // the first row's first term; terms of a row follow one another, each of kTileDepth
  int64_t line;         // elements from a row of a tile to its next
  int64_t row;          // to the next tile of rows
  int64_t again;        // to the first term as lower ones are multiplied by: 0, or where infinite ones are zeros
  int64_t block;        // to the next block of channels
  const int64_t* taps;  // lines from a row to what each tap reads
  int64_t tap_count, blocks;
  const uint16_t* w;  // of each block of channels, tap, term: a tile for each column, of pairs of channels
  float* sums;        // tiles [row][column] of kTileRows x kTileColumns floats
  bool continues;     // on what `sums` holds; else from zero
  // What is multiplied by next: so many lines of the cache, so many bytes apart, are asked for in each block of
  // channels and tap.
  const char* ahead;
  int64_t ahead_lines, ahead_apart;
};
using MultiplyTiles = void (*)(const TileProduct&);
// All, or, of three terms, those of first terms apart from the others: where lower ones are summed before any first,
// each rounds a sum that is as small as they are.
enum class TileTerms { All, Lower, First };
// By the numbers of terms and of tiles.
MultiplyTiles multiply_function(TileUnit unit, int terms, TileTerms which, int rows, int columns);

// Around products, in each thread. Rows of a tile: 16, or fewer where there are fewer in all.
void begin_tiles(TileUnit unit, int rows);
void end_tiles(TileUnit unit);

}  // namespace gopt_runtime
