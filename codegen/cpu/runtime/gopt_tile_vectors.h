// What stands around products of tiles (gopt_tile_kernel.h): floats split into what is multiplied, rows and lines made
// into tiles, and what is done with sums before they are stored; with vectors where the processor has them, the same
// number by number elsewhere.
#pragma once

#include <cstdint>

#include "gopt_tile_kernel.h"

namespace gopt_runtime {

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
