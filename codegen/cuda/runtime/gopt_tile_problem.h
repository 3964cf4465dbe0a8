// What kernels of tiles are given, and what a launch must know of them. No library's header is read here: a kernel's
// own file compiles in half the time.
#pragma once

#include "gopt_element.h"

namespace gopt_runtime {

// What a source of 16 bits becomes before it is multiplied (gopt_prologue.cuh): x scale[channel] + shift[channel],
// between two numbers, or x gates[image, channel], of the source's type.
struct PrologueProblem {
  const float* lines = nullptr;  // scale and shift of each channel, of as many as whole slices have
  float least = 0, largest = 0;
  const void* gates = nullptr;
  int positions = 1;  // of the result, of an image
};

// dst[row, column] = activation(scale sum over depth + bias + addend). A row is a position of the result; its depth are
// the window's channels, one tap after another. A product is a convolution of one tap over an image of one line.
struct TileProblem {
  const void *src = nullptr, *weights = nullptr, *bias = nullptr, *addend = nullptr;
  void* dst = nullptr;
  int height = 1, width = 1, channels = 1, out_height = 1, out_width = 1, kernel_height = 1, kernel_width = 1;
  int strides[2] = {1, 1}, dilations[2] = {1, 1}, pads[2] = {0, 0};
  // Of a volume, the axis before these.
  int planes = 1, out_planes = 1, kernel_planes = 1, stride_of_planes = 1, dilation_of_planes = 1, pad_of_planes = 0;
  int rows = 0, columns = 0, depth = 0;
  int row_tiles = 0;
  // Of a transposed convolution, which is one for each residue (gopt_transposed.cuh).
  int images = 1, residues = 1;
  // Elements from one position to the next.
  int src_line = 0;
  int64_t dst_line = 0, addend_line = 0;
  int64_t line_of_weights = 0;  // elements from one line of the weights to the next: of a column's, or of a depth's
  // Matrices of a batch: how many along an axis, and steps in elements.
  int batch[3] = {1, 1, 1};
  int64_t src_steps[3] = {0, 0, 0}, weight_steps[3] = {0, 0, 0}, dst_step = 0, bias_step = 0;
  // Of a convolution in groups, of which a batch is so many that `channels` and `columns` are theirs: a column's
  // weights are those of its own group's channels, which are copied in pieces of so many bytes; the others' are zero.
  int group_channels = 0, group_columns = 0, piece = 0;
  float scale = 1;
  Activation activation;
  PrologueProblem prologue;
  Element result = Element::Float32;
  bool is_aligned = false;            // four elements of the result, its bias and its addend at a time
  bool counts_outside = false;        // of a pool's mean: it divides by all of the window
  bool has_finite_weights = false;    // of windows over channels: what lies outside may count as zero
  bool has_constant_weights = false;  // and bias: they may be read before the kernel that comes before has ended
};

// Of a transposed convolution of these extents, whose weights lie [channel, taps, column]: its rows are those of the
// residue that has most.
inline void set_residues(TileProblem& p, int images) {
  const auto most_positions = [](int extent, int step) { return (extent + step - 1) / step; };
  p.images = images;
  p.residues = p.stride_of_planes * p.strides[0] * p.strides[1];
  p.rows = images * most_positions(p.out_planes, p.stride_of_planes) * most_positions(p.out_height, p.strides[0]) *
           most_positions(p.out_width, p.strides[1]);
  p.line_of_weights = p.columns;
  p.weight_steps[2] = int64_t{p.channels} * p.kernel_planes * p.kernel_height * p.kernel_width * p.columns;
}

// Several in one launch: blocks of each, one after another. Beside tiles there may be pools.
constexpr int kMostMembers = 8;
enum class Work { Tiles, Largest, Mean };
struct TileProblems {
  TileProblem problem[kMostMembers];
  Work work[kMostMembers] = {};
  int end[kMostMembers] = {};    // of a problem's blocks
  int tiles[kMostMembers] = {};  // of a matrix of its batch
};

// A kernel of one tile shape.
struct TileKernel {
  const void* function = nullptr;
  int rows = 0, columns = 0, threads = 0, shared_bytes = 0;
  int shared_bytes_of_tile = 0;         // of a kernel of warpgroups, where it is a tile
  int stage_bytes = 0, stage_keys = 0;  // of tiles and attention, of which shared_bytes has room for two stages
  int slice_depth = 0, sum_bytes = 0;   // of tiles: of a slice, of which a stage has one; and for the sums after that
  bool needs_chunks = false;            // of warpgroups: results are stored from registers, or not at all
  // Of tiles: stages of the ring. Of warpgroups: with room for sums behind it; and where results are stored from
  // registers, which takes no more memory.
  int stages = 0, stages_alone = 0, shared_bytes_alone = 0;
  // Of windows over channels: of a block's rectangle of the result, whose lines are of `rows` positions of `columns`
  // channels; 0 where a thread makes so much.
  int lines = 0;
};

}  // namespace gopt_runtime
