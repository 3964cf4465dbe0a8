// Convolutions of images of few channels, by tiles of our own that keep a patch of the image in shared memory: what a
// launch needs.
#pragma once

#include "gopt_tile_problem.h"

namespace gopt_runtime {

constexpr int kPatchWide = 16;     // positions of the result along a line
constexpr int kPositionBytes = 8;  // of the image

// A block makes rectangles of positions, kPatchWide along a line, for some columns, one after another. A position of
// the image is of four channels in 16 bits.
struct PatchProblem {
  TileProblem problem;
  int wide = 0, high = 0;   // rectangles of an image
  int blocks = 0;           // that divide those of all images, for the same columns
  int lines = 0, line = 0;  // of the image that a rectangle's windows see; the second in positions, an even number
  int copies = 1;           // of the patch; the second begins a position later, for windows that begin at odd ones
  int taps_of_line = 0;     // of the kernel, with zeros up to a multiple of four
  int column_bytes = 0;     // from the weights of a column to those of the next
  bool is_stored_from_registers = false;  // RegisterResult (gopt_register_result.cuh)
};

// By tiles of so many rows.
inline PatchProblem patches_of(const TileProblem& problem, int rows) {
  constexpr int kChunkBytes = 16, kTapsAtOnce = 4;
  const auto multiple = [](int count, int of) { return (count + of - 1) / of * of; };
  PatchProblem patch;
  const TileProblem& p = patch.problem = problem;
  const int high = rows / kPatchWide;
  patch.wide = (p.out_width + kPatchWide - 1) / kPatchWide;
  patch.high = (p.out_height + high - 1) / high;
  patch.taps_of_line = multiple(p.kernel_width, kTapsAtOnce);
  patch.blocks = p.rows / (p.out_height * p.out_width) * patch.wide * patch.high;  // one each
  patch.lines = (high - 1) * p.strides[0] + p.kernel_height;
  patch.line = multiple((kPatchWide - 1) * p.strides[1] + patch.taps_of_line, 2);
  patch.copies = p.strides[1] % 2 == 0 ? 1 : 2;
  // An odd number of chunks: those of eight columns lie in different banks.
  patch.column_bytes = (p.kernel_height * patch.taps_of_line * kPositionBytes / kChunkBytes | 1) * kChunkBytes;
  return patch;
}

}  // namespace gopt_runtime
