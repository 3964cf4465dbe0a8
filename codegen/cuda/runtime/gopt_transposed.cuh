// A transposed convolution in steps as convolutions in steps of one: positions of the result that leave the same
// remainder by the steps, a residue, see the same taps of the kernel, turned over. Each is tiles of its own, and no
// product is with a zero that was put between positions.
#pragma once

#include "gopt_tile_problem.h"
#include "gopt_windows.cuh"

namespace gopt_runtime {
namespace tiles {

// One axis of a residue.
struct ResidueAxis {
  int at, step;         // its first position of the result, and from one to the next
  int positions, taps;  // as many as it has
  int last_tap;         // of the kernel: what the window's first tap is
  int pad;              // before the source, of the window; less than zero: the window begins behind its first position

  // Where steps and dilation are both above one there is one tap (planner/tiles.cc).
  __device__ __forceinline__ ResidueAxis(int number, int out, int kernel, int step_, int dilation, int pad_of_source)
      : at(number), step(step_) {
    const int beyond = number + pad_of_source, first_tap = beyond % step;
    positions = out > number ? (out - number + step - 1) / step : 0;
    taps = kernel > first_tap ? (kernel - first_tap + step - 1) / step : 0;
    last_tap = first_tap + (taps - 1) * step;
    pad = dilation * (taps - 1) - beyond / step;
  }
  __device__ __forceinline__ int position(int i) const { return at + i * step; }
  // Of the kernel, of the window's tap.
  __device__ __forceinline__ int tap_of_kernel(int tap) const { return last_tap - tap * step; }
};

struct Residue {
  __device__ __forceinline__ Residue(const TileProblem& p, int number)
      : x(number % p.strides[1], p.out_width, p.kernel_width, p.strides[1], p.dilations[1], p.pads[1]),
        y(number / p.strides[1] % p.strides[0], p.out_height, p.kernel_height, p.strides[0], p.dilations[0], p.pads[0]),
        z(number / (p.strides[1] * p.strides[0]), p.out_planes, p.kernel_planes, p.stride_of_planes,
          p.dilation_of_planes, p.pad_of_planes) {}

  // The convolution that it is.
  __device__ __forceinline__ TileProblem problem(const TileProblem& whole) const {
    TileProblem own = whole;
    own.out_width = x.positions, own.out_height = y.positions, own.out_planes = z.positions;
    own.kernel_width = max(x.taps, 1), own.kernel_height = max(y.taps, 1), own.kernel_planes = max(z.taps, 1);
    own.pads[1] = x.pad, own.pads[0] = y.pad, own.pad_of_planes = z.pad;
    own.strides[0] = own.strides[1] = own.stride_of_planes = 1;
    own.rows = whole.images * z.positions * y.positions * x.positions;
    own.depth = z.taps * y.taps * x.taps * whole.channels;
    return own;
  }

  ResidueAxis x, y, z;
};

// Which positions of the result a tile's rows are.
struct ResidueRows {
  __device__ __forceinline__ ResidueRows(const TileProblem& whole, const Residue& residue, int first_, int end_)
      : p(whole), of(residue), first(first_), end(end_) {}
  __device__ __forceinline__ bool has(int i) const { return first + i < end; }
  __device__ __forceinline__ int row(int i) const {
    if (!has(i)) return 0;
    const int line = (first + i) / of.x.positions, x = first + i - line * of.x.positions;
    const int plane = line / of.y.positions, y = line - plane * of.y.positions;
    const int image = plane / of.z.positions, z = plane - image * of.z.positions;
    const int whole_plane = image * p.out_planes + of.z.position(z);
    return (whole_plane * p.out_height + of.y.position(y)) * p.out_width + of.x.position(x);
  }

  const TileProblem& p;
  Residue of;
  int first, end;
};

// Lines of the weights, one of a tap and channel of the source, which lie [channel, tap of the kernel, column]: those
// that a thread reads, each slice of the depth so many channels further.
class LinesOfTaps {
 public:
  __device__ __forceinline__ LinesOfTaps(const TileProblem& whole, const TileProblem& own, const Residue& residue)
      : whole_(whole), windows_(own), of_(residue) {}

  // The first slice's, of this place in the depth.
  __device__ __forceinline__ void find(int depth) { windows_.find_tap(depth); }
  __device__ __forceinline__ void go_on(int channels) { windows_.go_on(channels); }
  __device__ __forceinline__ bool is_there() const { return windows_.tap.z < of_.z.taps; }
  // In elements of the weights.
  __device__ __forceinline__ int64_t line() const {
    const Tap& tap = windows_.tap;
    const int plane = windows_.channel * whole_.kernel_planes + of_.z.tap_of_kernel(tap.z);
    const int row = plane * whole_.kernel_height + of_.y.tap_of_kernel(tap.y);
    return (static_cast<int64_t>(row) * whole_.kernel_width + of_.x.tap_of_kernel(tap.x)) * whole_.line_of_weights;
  }

 private:
  const TileProblem& whole_;
  Windows<true, 1> windows_;
  const Residue& of_;
};

}  // namespace tiles
}  // namespace gopt_runtime
