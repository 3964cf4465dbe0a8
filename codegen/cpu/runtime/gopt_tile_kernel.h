// Products of bfloat16 tiles: by the processor's matrix unit (AMX), or by code that computes just what that does,
// rounding for rounding, for tests on other processors. And the split of floats into what is multiplied.
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

// Which of 32 channels comes where in a line, and in a tile of weights: of one term in order, as bfloat16 sources lie;
// of several, channels c and c + 16 side by side, which is how two vectors of floats become one of terms.
constexpr int place_in_line(int channel, int terms) {
  return terms == 1 ? channel : channel % kTileColumns * 2 + channel / kTileColumns;
}

// 32 channels, or the first of them, of positions one after another.
template <class T>
struct ChannelRow {
  const T* from;
  int64_t position, channel, half;  // elements from one to the next; to the channels from the 16th on
  int64_t positions;
  int channels;                                // others are zeros
  uint16_t* to;                                // the first term; the others kTileDepth apart
  int64_t line;                                // elements between positions
  int64_t place(int64_t index, int c) const {  // of a position's channel
    return index * position + c / kTileColumns * half + c % kTileColumns * channel;
  }
};
using TermRow = ChannelRow<float>;
// Returns the bits of the largest magnitude. Where that is kRoundsToInfinity or more, what was written is not to be
// used, and `split_all` is to be called.
using SplitRow = uint32_t (*)(const TermRow&);
SplitRow split_function(int terms);
// Any numbers, by so many terms, and where these are several one more plane: the first terms again, zeros for those
// that are not finite.
void split_all(int terms, const TermRow& row);
// Of bfloat16 numbers, which are terms as they are.
void copy_halves(const ChannelRow<uint16_t>& row);
// 16 lines of 16 words of two numbers, so many elements apart, turned over into a tile; or each word of two numbers of
// two lines, the first's and the second's.
void turn_over_words(const uint16_t* from, int64_t line, uint16_t* tile);
void interleave_lines(const uint16_t* first, const uint16_t* second, uint16_t* words);

// What is done with sums of one or two tiles side by side before they are stored: bias, an addition, a cut.
struct TileRows {
  float* sums;  // one tile after the other
  int rows, columns;
  int channels[2];         // of each tile's 16
  const int64_t* offsets;  // of each row in the result; -1: none
  int64_t column;          // elements to the second tile's in the result
  const float* bias;       // of the channels; null: none
  const void* addend;      // lies as the result does; null: none
  float least, most;       // what a result is cut off at
  void* dst;               // null: back to where the sums are
  bool is_filled;          // of 16 channels those that are none are stored as zeros
};
using FinishTiles = void (*)(const TileRows&);
// Null where the processor has no vectors for it. `is_half`: result and what is added are bfloat16.
FinishTiles finish_function(bool is_half);

}  // namespace gopt_runtime
