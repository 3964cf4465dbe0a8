// Implicit matrix products on the tensor cores. A block makes a tile of the result; the depth is read in slices of 128
// bytes of each row and column through a ring of stages in shared memory, filled asynchronously. A cluster of blocks
// may divide the depth of one tile: their sums are added through each other's shared memory, in the order of the
// blocks, so that results never change. Weights that do not depend on the run are fetched before the previous kernel
// has ended.
#pragma once

#include "gopt_channels.cuh"
#include "gopt_fragments.cuh"
#include "gopt_launch.h"
#include "gopt_prologue.cuh"
#include "gopt_tile_result.cuh"
#include "gopt_tile_problem.h"
#include "gopt_transposed.cuh"
#include "gopt_windows.cuh"

namespace gopt_runtime {
namespace tiles {

constexpr int kSlice = 128;  // bytes of a row in a stage
constexpr int kChunks = kSlice / kChunk;

// ---- a tile ----

// How the weights lie: a column's depth together, of it what is its group's, or a depth's columns; likewise of a
// transposed convolution, whose taps come in an order of their own for each residue of its positions.
enum class Right { Columns, Groups, Lines, Taps };
// What is copied at once: 16 bytes of channels, these of the source alone and weights by elements, the four channels of
// a position in 16 bits, an element.
enum class Copies { Chunks, ChunksOfSource, Positions, Elements };

template <int kRows_, int kColumns_, int kWarpRows_, int kWarpColumns_, int kStages_>
struct Shape {
  static constexpr int kRows = kRows_, kColumns = kColumns_, kWarpRows = kWarpRows_, kWarpColumns = kWarpColumns_,
                       kStages = kStages_, kThreads = kWarpRows * kWarpColumns * 32;
  static constexpr bool kHasPlanes = false;
};
// Of images with a third axis.
template <class S>
struct Volume : S {
  static constexpr bool kHasPlanes = true;
};

// Those of the planner (planner/tiles.cc): rows, columns, warps along either, stages of the ring.
using Tile16x64 = Shape<16, 64, 1, 4, 6>;
using Tile32x32 = Shape<32, 32, 2, 2, 6>;
using Tile32x64 = Shape<32, 64, 2, 2, 6>;
using Tile64x32 = Shape<64, 32, 2, 2, 6>;
using Tile64x64 = Shape<64, 64, 2, 2, 4>;
using Tile64x128 = Shape<64, 128, 2, 2, 4>;  // in the place of warpgroups alone
using Tile128x64 = Shape<128, 64, 2, 2, 4>;
using Tile128x128 = Shape<128, 128, 2, 4, 4>;
using Tile128x256 = Shape<128, 256, 2, 4, 3>;  // likewise

template <class Operand, Right kRight, Copies kCopies, class S, Before kBefore = Before::Nothing>
class Tile {
 public:
  using T = typename Operand::Stored;
  static constexpr int kSize = sizeof(T), kOfChunk = kChunk / kSize, kDepth = kSlice / kSize;
  static constexpr int kLeftBytes = S::kRows * kSlice;
  // Lines are padded by a chunk, or 32 bytes, so that eight of them lie in different banks.
  static constexpr int kLineBytes = S::kColumns * kSize + (kSize == 2 ? 16 : 32);
  static constexpr bool kIsTransposed = kRight == Right::Taps, kIsByLines = kRight == Right::Lines || kIsTransposed;
  static constexpr int kRightBytes = kIsByLines ? kDepth * kLineBytes : S::kColumns * kSlice;
  static constexpr int kStageBytes = kLeftBytes + kRightBytes;
  struct NoLines {};
  using Rows = std::conditional_t<kIsTransposed, ResidueRows, ConsecutiveRows>;
  using Lines = std::conditional_t<kIsTransposed, LinesOfTaps, NoLines>;
  using Result = TileResult<S, Rows>;
  static constexpr int kRingBytes = S::kStages * kStageBytes;
  static constexpr int kSharedBytes = kRingBytes > Result::kSumBytes ? kRingBytes : Result::kSumBytes;

  // Number `tile` of the matrix `matrix` of the batch.
  __device__ __forceinline__ Tile(const TileProblem& p, unsigned tile, unsigned matrix)
      : Tile(p, tile, matrix, ConsecutiveRows{first_row(p, tile), p.rows}, NoLines{}) {}
  // Of a residue's own problem.
  __device__ __forceinline__ Tile(const TileProblem& whole, const TileProblem& own, const Residue& residue,
                                  unsigned tile, unsigned matrix)
      : Tile(own, tile, matrix, ResidueRows(whole, residue, first_row(own, tile), own.rows),
             LinesOfTaps(whole, own, residue)) {
    lines_.find(slice_ * kDepth + thread() / kOfLine);
  }

  __device__ __forceinline__ void run() {
    const int first = slice_;
    if (!p_.has_constant_weights) gopt_wait();
    result_.fetch_bias();
#pragma unroll
    for (int s = 0; s < S::kStages - 1; s++)
      if (first + s < end_) load_right(s, first + s);
    if (p_.has_constant_weights) gopt_wait();
#pragma unroll
    for (int s = 0; s < S::kStages - 1; s++) {
      if (first + s < end_) load_left(s);
      end_stage();
    }
    result_.fetch_addend();
    multiply_all();
    store();
  }

 private:
  static constexpr int kWarpTileRows = S::kRows / S::kWarpRows, kWarpTileColumns = S::kColumns / S::kWarpColumns;
  static constexpr int kM = kWarpTileRows / 16, kN = kWarpTileColumns / 8;
  static constexpr int kLeftLoads = S::kRows * kChunks / S::kThreads, kRightLoads = S::kColumns * kChunks / S::kThreads;
  static constexpr int kRowStep = S::kThreads / kChunks;  // rows between a thread's loads
  static constexpr int kOfLine = S::kColumns / kOfChunk;  // chunks
  static_assert(kM >= 1 && kN >= 2 && kN % 2 == 0 && kLeftLoads >= 1 && kRightLoads >= 1, "tiles of whole fragments");

  static __device__ __forceinline__ int first_row(const TileProblem& p, unsigned tile) {
    return static_cast<int>(tile % p.row_tiles) * S::kRows;
  }

  __device__ __forceinline__ Tile(const TileProblem& p, unsigned tile, unsigned matrix, const Rows& rows,
                                  const Lines& lines)
      : p_(p),
        matrix_(matrix),
        first_row_(first_row(p, tile)),
        first_column_(static_cast<int>(tile / p.row_tiles) * S::kColumns),
        result_(p, rows, first_column_, matrix, static_cast<int>(blockIdx.y * S::kThreads + threadIdx.x)),
        windows_(p),
        lines_(lines) {
    extern __shared__ __align__(128) char shared[];
    shared_ = shared;
    base_ = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    const unsigned slices = (p.depth + kDepth - 1) / kDepth;
    slice_ = static_cast<int>(slices * blockIdx.y / gridDim.y);
    end_ = static_cast<int>(slices * (blockIdx.y + 1) / gridDim.y);
    find_batch();
    windows_.find(first_row_ + load_row(0), kRowStep, slice_ * kDepth + chunk() * kOfChunk);
  }

  __device__ __forceinline__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ __forceinline__ int lane() const { return thread() % 32; }
  __device__ __forceinline__ int chunk() const { return thread() % kChunks; }
  __device__ __forceinline__ int load_row(int i) const { return thread() / kChunks + i * kRowStep; }
  __device__ __forceinline__ unsigned left_at(int stage) const { return base_ + stage * kStageBytes; }
  __device__ __forceinline__ unsigned right_at(int stage) const { return left_at(stage) + kLeftBytes; }
  // Chunks of a row are permuted by its number, so that eight rows of a fragment lie in different banks.
  static __device__ __forceinline__ unsigned in_slice(int row, int chunk) {
    return row * kSlice + ((chunk ^ (row & 7)) * kChunk);
  }

  __device__ __forceinline__ void find_batch() {
    src_ = static_cast<const T*>(p_.src);
    weights_ = static_cast<const T*>(p_.weights);
    if (matrix_ == 0) return;
    unsigned rest = matrix_;
#pragma unroll
    for (int axis = 2; axis >= 0; axis--) {
      const unsigned count = p_.batch[axis], i = rest % count;
      rest /= count;
      src_ += i * p_.src_steps[axis];
      weights_ += i * p_.weight_steps[axis];
    }
  }

  // The next slice of the windows, in turn.
  __device__ __forceinline__ void load_left(int stage) {
    if constexpr (kCopies == Copies::Chunks || kCopies == Copies::ChunksOfSource) {
      const auto [step, far, is_tap] = windows_.reach(windows_.tap);
#pragma unroll
      for (int i = 0; i < kLeftLoads; i++) {
        const bool is_there = is_tap && windows_.is_inside(i, far);
        copy_chunk(left_at(stage) + in_slice(load_row(i), chunk()),
                   is_there ? src_ + (windows_.at[i] + step + windows_.channel) : src_, is_there);
      }
    } else if constexpr (kCopies == Copies::Positions) {
      load_left_by_positions(stage);
    } else {
      load_left_by_elements(stage);
    }
    windows_.go_on(kDepth);
  }

  // A chunk is of two taps.
  __device__ __forceinline__ void load_left_by_positions(int stage) {
    constexpr int kBytes = kChunk / 2;
    Tap tap = windows_.tap;
#pragma unroll
    for (int half = 0; half < 2; half++, windows_.go_to_next(tap)) {
      const auto [step, far, is_tap] = windows_.reach(tap);
#pragma unroll
      for (int i = 0; i < kLeftLoads; i++) {
        const bool is_there = is_tap && windows_.is_inside(i, far);
        copy_piece<kBytes>(left_at(stage) + in_slice(load_row(i), chunk()) + half * kBytes,
                           is_there ? src_ + (windows_.at[i] + step) : src_, is_there);
      }
    }
  }

  // Channels that fill no chunk: a chunk spans several taps.
  __device__ __forceinline__ void load_left_by_elements(int stage) {
    int channel = windows_.channel;
    Tap tap = windows_.tap;
    unsigned words[kLeftLoads][4] = {};
#pragma unroll
    for (int e = 0; e < kOfChunk; e++) {
      const auto [step, far, is_tap] = windows_.reach(tap);
#pragma unroll
      for (int i = 0; i < kLeftLoads; i++)
        if (is_tap && windows_.is_inside(i, far)) put_element(words[i], e, src_[windows_.at[i] + step + channel]);
      if (++channel == p_.channels) channel = 0, windows_.go_to_next(tap);
    }
#pragma unroll
    for (int i = 0; i < kLeftLoads; i++) store_chunk(left_at(stage) + in_slice(load_row(i), chunk()), words[i]);
  }

  __device__ __forceinline__ void load_right(int stage, int slice) {
    if constexpr (kRight == Right::Groups) {
#pragma unroll
      for (int i = 0; i < kRightLoads; i++)
        load_group(right_at(stage) + in_slice(load_row(i), chunk()), first_column_ + load_row(i),
                   slice * kDepth + chunk() * kOfChunk);
    } else if constexpr (kRight == Right::Columns) {
      const int depth = slice * kDepth + chunk() * kOfChunk;
#pragma unroll
      for (int i = 0; i < kRightLoads; i++) {
        const int column = first_column_ + load_row(i);
        const T* line = weights_ + column * p_.line_of_weights;
        load_right_chunk(right_at(stage) + in_slice(load_row(i), chunk()), line, depth, p_.depth, column < p_.columns);
      }
    } else if constexpr (kIsTransposed) {
      load_taps(stage);
    } else {
#pragma unroll
      for (int i = 0; i < kRightLoads; i++) {
        const int number = thread() + i * S::kThreads, line = number / kOfLine, column = number % kOfLine * kOfChunk;
        const int depth = slice * kDepth + line;
        load_right_chunk(right_at(stage) + line * kLineBytes + column * kSize, weights_ + depth * p_.line_of_weights,
                         first_column_ + column, p_.columns, depth < p_.depth);
      }
    }
  }
  // The next slice of the lines, in turn.
  __device__ __forceinline__ void load_taps(int stage) {
    constexpr int kLineStep = S::kThreads / kOfLine;  // lines between a thread's loads
    const int column = thread() % kOfLine * kOfChunk;
    Lines lines = lines_;
#pragma unroll
    for (int i = 0; i < kRightLoads; i++, lines.go_on(kLineStep)) {
      const bool is_line = lines.is_there();
      load_right_chunk(right_at(stage) + (thread() / kOfLine + i * kLineStep) * kLineBytes + column * kSize,
                       weights_ + (is_line ? lines.line() : 0), first_column_ + column, p_.columns, is_line);
    }
    lines_.go_on(kDepth);
  }
  // A chunk of a column's depth, which is zero but for the channels of the column's group.
  __device__ __forceinline__ void load_group(unsigned to, int column, int depth) const {
    const bool is_column = column < p_.columns;
    const T* line = weights_ + (is_column ? column * p_.line_of_weights : 0);
    const int first = column / p_.group_columns * p_.group_channels;
    if constexpr (kCopies == Copies::Chunks) {
      const int tap = depth / p_.channels, channel = depth - tap * p_.channels - first;
      line += tap * p_.group_channels;
      const bool is_there = is_column && depth < p_.depth;
      switch (p_.piece) {
        case 4: return copy_pieces<4>(to, line, channel, is_there);
        case 8: return copy_pieces<8>(to, line, channel, is_there);
        default: return copy_pieces<kChunk>(to, line, channel, is_there);
      }
    } else {
      unsigned words[4] = {};
#pragma unroll
      for (int e = 0; e < kOfChunk; e++) {
        const int tap = (depth + e) / p_.channels, channel = depth + e - tap * p_.channels - first;
        if (is_column && depth + e < p_.depth && is_of_group(channel))
          put_element(words, e, line[tap * p_.group_channels + channel]);
      }
      store_chunk(to, words);
    }
  }
  __device__ __forceinline__ bool is_of_group(int channel) const {
    return static_cast<unsigned>(channel) < static_cast<unsigned>(p_.group_channels);
  }
  template <int kBytes>
  __device__ __forceinline__ void copy_pieces(unsigned to, const T* tap, int channel, bool is_there) const {
    constexpr int kOfPiece = kBytes / kSize;
#pragma unroll
    for (int piece = 0; piece < kOfChunk / kOfPiece; piece++, to += kBytes, channel += kOfPiece) {
      const bool is_own = is_there && is_of_group(channel);
      copy_piece<kBytes>(to, is_own ? tap + channel : weights_, is_own);
    }
  }

  // Elements of a line from `from` on, as far as it goes.
  __device__ __forceinline__ void load_right_chunk(unsigned to, const T* line, int from, int end, bool is_line) const {
    if constexpr (kCopies == Copies::Chunks) {
      const bool is_there = is_line && from < end;
      copy_chunk(to, is_there ? line + from : weights_, is_there);
    } else if constexpr (kCopies == Copies::Positions) {
      constexpr int kBytes = kChunk / 2;
#pragma unroll
      for (int half = 0; half < 2; half++, to += kBytes, from += kBytes / kSize) {
        const bool is_there = is_line && from < end;
        copy_piece<kBytes>(to, is_there ? line + from : weights_, is_there);
      }
    } else {
      unsigned words[4] = {};
#pragma unroll
      for (int e = 0; e < kOfChunk; e++)
        if (is_line && from + e < end) put_element(words, e, line[from + e]);
      store_chunk(to, words);
    }
  }

  __device__ __forceinline__ void multiply_all() {
#pragma unroll
    for (int m = 0; m < kM; m++) clear_sums<kN>(sums_[m]);
    int computed = 0, loaded = S::kStages - 1;
    for (int slice = slice_; slice < end_; slice++) {
      wait_for_stages<S::kStages - 2>();
      __syncthreads();
      if (slice + S::kStages - 1 < end_) {
        load_left(loaded);
        load_right(loaded, slice + S::kStages - 1);
      }
      end_stage();
      multiply(computed, slice * kDepth);
      computed = computed + 1 == S::kStages ? 0 : computed + 1;
      loaded = loaded + 1 == S::kStages ? 0 : loaded + 1;
    }
  }

  __device__ __forceinline__ int warp_row() const { return thread() / 32 % S::kWarpRows * kWarpTileRows; }
  __device__ __forceinline__ int warp_column() const { return thread() / 32 / S::kWarpRows * kWarpTileColumns; }

  __device__ __forceinline__ void multiply(int stage, [[maybe_unused]] int channel) {
    constexpr int kSteps = kSlice / 32;
#pragma unroll
    for (int step = 0; step < kSteps; step++) {
      unsigned a[kM][4], b[kN][2];
#pragma unroll
      for (int m = 0; m < kM; m++) {
        load_matrices(a[m], left_at(stage) + in_slice(warp_row() + m * 16 + lane() % 16, step * 2 + lane() / 16));
        if constexpr (kBefore != Before::Nothing) {
          const FragmentPrologue<Operand, kBefore> prologue(p_, first_row_ + warp_row() + m * 16 + lane() / 4);
          typename FragmentPrologue<Operand, kBefore>::Numbers numbers;
          prologue.fetch(numbers, channel + step * 16);
          prologue.apply(a[m], numbers);
        }
      }
#pragma unroll
      for (int n = 0; n < kN; n += 2) load_right_fragments(b + n, stage, step, warp_column() + n * 8);
#pragma unroll
      for (int m = 0; m < kM; m++)
#pragma unroll
        for (int n = 0; n < kN; n++) Operand::mma(sums_[m][n], a[m], b[n]);
    }
  }

  // Of 16 columns.
  __device__ __forceinline__ void load_right_fragments(unsigned (*b)[2], int stage, int step, int column) const {
    if constexpr (!kIsByLines) {
      unsigned r[4];
      load_matrices(r, right_at(stage) + in_slice(column + lane() % 8 + lane() / 16 * 8, step * 2 + lane() / 8 % 2));
      b[0][0] = r[0], b[0][1] = r[1], b[1][0] = r[2], b[1][1] = r[3];
    } else if constexpr (kSize == 2) {
      unsigned r[4];
      const int line = step * 16 + lane() % 16;
      load_matrices_transposed(r, right_at(stage) + line * kLineBytes + (column + lane() / 16 * 8) * kSize);
      b[0][0] = r[0], b[0][1] = r[1], b[1][0] = r[2], b[1][1] = r[3];
    } else {
      const unsigned at = right_at(stage) + (step * 8 + lane() % 4) * kLineBytes + (column + lane() / 4) * kSize;
#pragma unroll
      for (int n = 0; n < 2; n++)
#pragma unroll
        for (int half = 0; half < 2; half++) b[n][half] = load_word(at + half * 4 * kLineBytes + n * 8 * kSize);
    }
  }

  __device__ __forceinline__ void store() {
    wait_for_stages<0>();
    __syncthreads();
    float* sums = reinterpret_cast<float*>(shared_);
#pragma unroll
    for (int m = 0; m < kM; m++)
      put_sums<kN>(sums + (warp_row() + m * 16) * Result::kPitch + warp_column(), Result::kPitch, sums_[m]);
    result_.finish(sums);
  }

  const TileProblem& p_;
  unsigned matrix_;
  int first_row_, first_column_;
  Result result_;
  char* shared_;
  unsigned base_;
  int slice_, end_;
  const T *src_, *weights_;
  Windows<S::kHasPlanes, kLeftLoads> windows_;  // of the rows that this thread loads
  Lines lines_;
  float sums_[kM][kN][4];
};

template <class Operand, Right kRight, Copies kCopies, class S, Before kBefore>
__global__ void __launch_bounds__(S::kThreads) tile_kernel(const __grid_constant__ TileProblem problem) {
  gopt_let_next_begin();
  gopt_touch(problem);
  if constexpr (kRight == Right::Taps) {
    const Residue residue(problem, static_cast<int>(blockIdx.z % problem.residues));
    const TileProblem own = residue.problem(problem);
    Tile<Operand, kRight, kCopies, S, kBefore>(problem, own, residue, blockIdx.x, blockIdx.z / problem.residues).run();
  } else {
    Tile<Operand, kRight, kCopies, S, kBefore>(problem, blockIdx.x, blockIdx.z).run();
  }
}

template <class Operand, Right kRight, Copies kCopies, class S>
__global__ void __launch_bounds__(S::kThreads) tile_group_kernel(const __grid_constant__ TileProblems all) {
  gopt_let_next_begin();
  int member = 0;
  while (static_cast<int>(blockIdx.x) >= all.end[member]) member++;
  const unsigned block = blockIdx.x - (member > 0 ? all.end[member - 1] : 0), tiles = all.tiles[member];
  const TileProblem& problem = all.problem[member];
  gopt_touch(problem);
  if (all.work[member] == Work::Tiles)
    return Tile<Operand, kRight, kCopies, S>(problem, block % tiles, block / tiles).run();
  using T = typename Operand::Stored;
  const unsigned thread = (block * gridDim.y + blockIdx.y) * S::kThreads + threadIdx.x;
  if (all.work[member] == Work::Largest)
    pool<Window::Largest, T>(problem, thread);
  else
    pool<Window::Mean, T>(problem, thread);
}

template <class Operand, Right kRight, Copies kCopies, class S>
TileKernel make_of(const void* function) {
  using OfKernel = Tile<Operand, kRight, kCopies, S>;
  TileKernel kernel{function, S::kRows, S::kColumns, S::kThreads, OfKernel::kSharedBytes};
  kernel.stage_bytes = OfKernel::kStageBytes, kernel.stages = S::kStages;
  kernel.slice_depth = OfKernel::kDepth, kernel.sum_bytes = OfKernel::Result::kSumBytes;
  return kernel;
}
template <class Operand, Right kRight, Copies kCopies, class S, Before kBefore = Before::Nothing>
TileKernel make() {
  return make_of<Operand, kRight, kCopies, S>(
      reinterpret_cast<const void*>(tile_kernel<Operand, kRight, kCopies, S, kBefore>));
}
template <class Operand, Right kRight, Copies kCopies, class S>
TileKernel make_group() {
  return make_of<Operand, kRight, kCopies, S>(
      reinterpret_cast<const void*>(tile_group_kernel<Operand, kRight, kCopies, S>));
}

}  // namespace tiles
}  // namespace gopt_runtime
