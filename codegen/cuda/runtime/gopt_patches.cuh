// Convolutions of images of few channels on the tensor cores. What the windows of a rectangle of positions see comes
// into shared memory once, and fragments of the implicit product are read from there as they lie: four taps of a line,
// of four channels each, are a step of the depth.
#pragma once

#include "gopt_fragments.cuh"
#include "gopt_launch.h"
#include "gopt_patches.h"
#include "gopt_register_result.cuh"
#include "gopt_tile_result.cuh"

namespace gopt_runtime {
namespace tiles {

// Rows and columns of a tile; four warps, each of whole lines of the rectangle.
template <int kRows_, int kColumns_>
struct PatchShape {
  static constexpr int kRows = kRows_, kColumns = kColumns_, kWarps = 4, kThreads = kWarps * 32;
  static constexpr int kLinesOfWarp = kRows_ / kPatchWide / kWarps;
};
// Those of the planner (planner/patches.cc).
using Patch64x32 = PatchShape<64, 32>;
using Patch64x64 = PatchShape<64, 64>;
using Patch128x64 = PatchShape<128, 64>;

// Rows of a tile as positions of a rectangle, of which so many lines and positions along them are in the result.
struct Rectangle {
  int first, line, high, wide;
  __device__ __forceinline__ int row(int i) const { return first + i / kPatchWide * line + i % kPatchWide; }
  __device__ __forceinline__ bool has(int i) const { return i / kPatchWide < high && i % kPatchWide < wide; }
};

template <class Operand, class S>
class PatchTile {
 public:
  using T = typename Operand::Stored;
  static_assert(4 * sizeof(T) == kPositionBytes, "a position is of four channels");
  using Result = TileResult<S, Rectangle>;

  __device__ __forceinline__ explicit PatchTile(const PatchProblem& patch)
      : patch_(patch), p_(patch.problem), column_(static_cast<int>(blockIdx.x) / patch.blocks * S::kColumns) {
    extern __shared__ __align__(128) char shared[];
    sums_at_ = reinterpret_cast<float*>(shared);
    weights_at_ = static_cast<unsigned>(__cvta_generic_to_shared(shared)) + Result::kSumBytes;
    image_at_ = weights_at_ + S::kColumns * patch.column_bytes;
  }

  // One rectangle after another; the next one's patch comes while results are stored.
  __device__ __forceinline__ void run() {
    if (!p_.has_constant_weights) gopt_wait();
    int rectangle = static_cast<int>(blockIdx.x) % patch_.blocks;
    const int end = p_.rows / (p_.out_height * p_.out_width) * patch_.wide * patch_.high;
    Place place = place_of(rectangle);
    load_weights();
    if (p_.has_constant_weights) gopt_wait();
    load_image(place);
    end_stage();
    while (rectangle < end) {
      const Place own = place;
      Result result = result_at(own);
      if (!patch_.is_stored_from_registers) {
        result.fetch_bias();
        result.fetch_addend();
      }
      wait_for_stages<0>();
      __syncthreads();
      multiply();
      if (!patch_.is_stored_from_registers)
#pragma unroll
        for (int m = 0; m < kM; m++)
          put_sums<kN>(sums_at_ + (warp() * kM + m) * kPatchWide * Result::kPitch, Result::kPitch, sums_[m]);
      __syncthreads();  // all have read the patch
      rectangle += patch_.blocks;
      place = place_of(rectangle);
      if (rectangle < end) load_image(place);
      end_stage();
      if (patch_.is_stored_from_registers)
#pragma unroll
        for (int m = 0; m < kM; m++) store_line(own, warp() * kM + m, sums_[m]);
      else
        result.finish(sums_at_);
    }
  }

 private:
  static constexpr int kM = S::kLinesOfWarp, kN = S::kColumns / 8, kChannels = 4;

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static __device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x) / 32; }

  // Where a rectangle begins in the result.
  struct Place {
    int image, y, x;
  };
  __device__ __forceinline__ Place place_of(int rectangle) const {
    const int of_image = patch_.wide * patch_.high, image = rectangle / of_image, within = rectangle - image * of_image,
              y = within / patch_.wide, x = within - y * patch_.wide;
    return {image, y * (S::kRows / kPatchWide), x * kPatchWide};
  }
  __device__ __forceinline__ Result result_at(const Place& place) const {
    const int first = (place.image * p_.out_height + place.y) * p_.out_width + place.x;
    const Rectangle rows{first, p_.out_width, p_.out_height - place.y, p_.out_width - place.x};
    return Result(p_, rows, column_, 0, static_cast<int>(threadIdx.x));
  }

  // A line of a rectangle, whose sums a warp has.
  __device__ __forceinline__ void store_line(const Place& place, int line, float (*sums)[4]) const {
    const int first = (place.image * p_.out_height + place.y + line) * p_.out_width + place.x,
              wide = place.y + line < p_.out_height ? min(kPatchWide, p_.out_width - place.x) : 0;
    RegisterResult<S, T, false> result(p_, first, first + wide, column_);
    result.fetch_bias();
    result.finish(sums);
  }

  // A tap of each column to a lane; those that fill a line up are zero.
  __device__ __forceinline__ void load_weights() const {
    const T* weights = static_cast<const T*>(p_.weights);
    const int taps = p_.kernel_height * patch_.taps_of_line;
    for (int tap = lane(); tap < taps; tap += 32) {
      const int y = tap / patch_.taps_of_line, x = tap - y * patch_.taps_of_line;
      const T* from = weights + (y * p_.kernel_width + x) * kChannels;
#pragma unroll 4
      for (int c = warp(); c < S::kColumns; c += S::kWarps) {
        const int column = column_ + c;
        const bool is_there = x < p_.kernel_width && column < p_.columns;
        copy_piece<kPositionBytes>(weights_at_ + c * patch_.column_bytes + tap * kPositionBytes,
                                   is_there ? from + column * p_.line_of_weights : weights, is_there);
      }
    }
  }

  // Lines of the patch to a warp each; what lies outside the image is zero.
  __device__ __forceinline__ void load_image(const Place& place) const {
    const T* image = static_cast<const T*>(p_.src) + place.image * p_.height * p_.width * p_.src_line;
    const int top = place.y * p_.strides[0] - p_.pads[0], left = place.x * p_.strides[1] - p_.pads[1];
    for (int line = warp(); line < patch_.lines; line += S::kWarps) {
      const int y = top + line;
      const bool is_line = static_cast<unsigned>(y) < static_cast<unsigned>(p_.height);
      for (int i = lane(); i < patch_.line; i += 32) {
        const int x = left + i;
        const bool is_there = is_line && static_cast<unsigned>(x) < static_cast<unsigned>(p_.width);
        const T* from = is_there ? image + (y * p_.width + x) * p_.src_line : image;
        const unsigned to = image_at_ + (line * patch_.line + i) * kPositionBytes;
        copy_piece<kPositionBytes>(to, from, is_there);
        if (patch_.copies == 2 && i > 0) copy_piece<kPositionBytes>(to + copy_bytes() - kPositionBytes, from, is_there);
      }
    }
  }
  __device__ __forceinline__ unsigned copy_bytes() const { return patch_.lines * patch_.line * kPositionBytes; }

  __device__ __forceinline__ void multiply() {
#pragma unroll
    for (int m = 0; m < kM; m++) clear_sums<kN>(sums_[m]);
    // A lane names eight halves of a row, two taps: of its position in the line, the first two or the others.
    const int begin = lane() % 16 * p_.strides[1];
    unsigned left[kM];
#pragma unroll
    for (int m = 0; m < kM; m++)
      left[m] = image_at_ +
                ((warp() * kM + m) * p_.strides[0] * patch_.line + begin + lane() / 16 * 2) * kPositionBytes +
                (begin % 2 == 0 ? 0 : copy_bytes() - kPositionBytes);
    unsigned right = weights_at_ + (lane() % 8 + lane() / 16 * 8) * patch_.column_bytes + lane() / 8 % 2 * kChunk;
    for (int y = 0; y < p_.kernel_height; y++) {
      for (int x = 0; x < patch_.taps_of_line; x += 4, right += 2 * kChunk) {
        unsigned a[kM][4], b[kN][2];
#pragma unroll
        for (int m = 0; m < kM; m++) {
          load_matrices(a[m], left[m] + x * kPositionBytes);
          keep_taps(a[m], p_.kernel_width - x);
        }
#pragma unroll
        for (int n = 0; n < kN; n += 2) {
          unsigned r[4];
          load_matrices(r, right + n * 8 * patch_.column_bytes);
          b[n][0] = r[0], b[n][1] = r[1], b[n + 1][0] = r[2], b[n + 1][1] = r[3];
        }
#pragma unroll
        for (int m = 0; m < kM; m++)
#pragma unroll
          for (int n = 0; n < kN; n++) Operand::mma(sums_[m][n], a[m], b[n]);
      }
#pragma unroll
      for (int m = 0; m < kM; m++) left[m] += patch_.line * kPositionBytes;
    }
  }
  // What is beside a window is no part of it, though its weight is zero: it may be infinite.
  static __device__ __forceinline__ void keep_taps(unsigned* a, int count) {
    const int tap = lane() % 4 / 2;
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (tap + i / 2 * 2 >= count) a[i] = 0;
  }

  const PatchProblem& patch_;
  const TileProblem& p_;
  int column_;
  float* sums_at_;
  unsigned weights_at_, image_at_;
  float sums_[kM][kN][4];
};

template <class Operand, class S>
__global__ void __launch_bounds__(S::kThreads, 3) patch_kernel(const __grid_constant__ PatchProblem problem) {
  gopt_let_next_begin();
  gopt_touch(problem);
  PatchTile<Operand, S>(problem).run();
}

// Its shared memory is that of the sums: what weights and a patch take is the launch's to say.
template <class Operand, class S>
TileKernel make_patches() {
  return {reinterpret_cast<const void*>(patch_kernel<Operand, S>), S::kRows, S::kColumns, S::kThreads,
          PatchTile<Operand, S>::Result::kSumBytes};
}

}  // namespace tiles
}  // namespace gopt_runtime
