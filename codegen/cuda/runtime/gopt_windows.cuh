// Windows of a convolution of channels last, as a thread of a tile walks over them: several positions of the result at
// once, the channels of one tap after another.
#pragma once

#include "gopt_tile_problem.h"

namespace gopt_runtime {
namespace tiles {

// A tap of the kernel, or how far it is from the window's first position; z is of volumes alone.
struct Tap {
  int z, y, x;
};

struct Reach {
  int step;  // elements from the window's first position to the tap's
  Tap far;
  bool is_tap;
};

template <bool kHasPlanes, int kCount>
struct Windows {
  __device__ __forceinline__ explicit Windows(const TileProblem& problem) : p(problem) {}

  // Where the windows of rows begin, and the tap and channel that are first in the depth.
  __device__ __forceinline__ void find(int row, int row_step, int depth) {
#pragma unroll
    for (int i = 0; i < kCount; i++, row += row_step) {
      constexpr int kOutside = -(1 << 28);
      top[i] = kOutside, left[i] = 0, at[i] = 0;
      if (kHasPlanes) front[i] = 0;
      if (row < p.rows) find_one(i, row);
    }
    find_tap(depth);
  }
  __device__ __forceinline__ void find_tap(int depth) {
    const int number = depth / p.channels, line = number / p.kernel_width;
    channel = depth - number * p.channels;
    tap = {0, line, number - line * p.kernel_width};
    if (kHasPlanes) tap.z = line / p.kernel_height, tap.y = line - tap.z * p.kernel_height;
  }

  __device__ __forceinline__ void go_to_next(Tap& one) const {
    if (++one.x < p.kernel_width) return;
    one.x = 0, one.y++;
    if (kHasPlanes && one.y == p.kernel_height) one.y = 0, one.z++;
  }
  // So many channels further.
  __device__ __forceinline__ void go_on(int channels) {
    channel += channels;
    while (channel >= p.channels) {
      channel -= p.channels;
      go_to_next(tap);
    }
  }

  __device__ __forceinline__ Reach reach(const Tap& one) const {
    const Tap far{kHasPlanes ? one.z * p.dilation_of_planes : 0, one.y * p.dilations[0], one.x * p.dilations[1]};
    const int line = kHasPlanes ? far.z * p.height + far.y : far.y;
    return {(line * p.width + far.x) * p.src_line, far, kHasPlanes ? one.z < p.kernel_planes : one.y < p.kernel_height};
  }
  __device__ __forceinline__ bool is_inside(int i, const Tap& far) const {
    const bool is_in_plane = static_cast<unsigned>(top[i] + far.y) < static_cast<unsigned>(p.height) &&
                             static_cast<unsigned>(left[i] + far.x) < static_cast<unsigned>(p.width);
    return is_in_plane && (!kHasPlanes || static_cast<unsigned>(front[i] + far.z) < static_cast<unsigned>(p.planes));
  }

  const TileProblem& p;
  int top[kCount], left[kCount], front[kHasPlanes ? kCount : 1];
  int at[kCount];  // elements from the first image to the window's first position
  int channel;
  Tap tap;

 private:
  __device__ __forceinline__ void find_one(int i, int row) {
    const int area = p.out_height * p.out_width, within = row % area;
    const int y = within / p.out_width, x = within - y * p.out_width;
    int plane = row / area;
    top[i] = y * p.strides[0] - p.pads[0];
    left[i] = x * p.strides[1] - p.pads[1];
    if (kHasPlanes) {
      const int image = plane / p.out_planes;
      front[i] = (plane - image * p.out_planes) * p.stride_of_planes - p.pad_of_planes;
      plane = image * p.planes + front[i];
    }
    at[i] = ((plane * p.height + top[i]) * p.width + left[i]) * p.src_line;
  }
};

}  // namespace tiles
}  // namespace gopt_runtime
