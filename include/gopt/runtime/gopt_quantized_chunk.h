// How products by weights of 4 and 8 bits divide their operands on CUDA (gopt_quantized_vectors.cuh): for the kernel,
// for who writes weights in that order (Layout::in_chunks), and for who chooses it.
#pragma once

namespace gopt_runtime {

// Of a column: words of 32 bits that four lanes take at once, each four; groups of them, one word a lane, have a scale.
constexpr int kWordsOfChunk = 16, kGroupsOfChunk = 4;
constexpr int numbers_of_word(int bits) { return 32 / bits; }
constexpr int numbers_of_chunk(int bits) { return kWordsOfChunk * numbers_of_word(bits); }

constexpr int kLinesOfTile = 8;
constexpr int kPartsOfFloat = 3;  // lines of a tile that one of floats is
constexpr int kOneBlock = 31;     // words of a block, as the power of two, where it is all of a column

}  // namespace gopt_runtime
