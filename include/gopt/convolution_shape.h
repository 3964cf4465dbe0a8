// A convolution as numbers, with as few axes as it needs: what kernels of libraries and of ours are told of it.
#pragma once

#include <cstdint>
#include <vector>

#include "gopt/plan.h"

namespace gopt {

// Pads before each spatial axis. ConvTranspose may say them by its result's extents (output_shape, auto_pad).
// Preconditions: a convolution's kernel of a plan whose node has number attributes.
std::vector<int64_t> pads_before(const Plan& plan, const Kernel& kernel);

bool is_transposed(const Kernel& kernel);  // of a convolution's; false of others

struct ConvolutionShape {
  // Images, channels (as stored: a block of few is filled up), then two or three spatial axes; weights as Conv and
  // ConvTranspose have them.
  std::vector<int64_t> src, weights, dst;
  std::vector<int64_t> strides, dilations, pads;  // of each spatial axis; pads before it
  int64_t groups = 1;
  bool transposed = false;

  size_t axes() const { return strides.size(); }
  // Whether each position is its own window along a spatial axis, and along all of them.
  bool is_pointwise(size_t axis) const;
  bool is_pointwise() const;
  // Whether one number of pads for both sides of an axis says the same: what lies beyond the last window does not
  // matter.
  bool pads_alike() const;
};

// Of a kernel for CUDA, the same function of the same memory. Two spatial axes stay as they are; of others those that
// the window does not extend over are merged with the next such one, and with the images where channels are last, and
// one axis gets another of one position before it.
ConvolutionShape convolution_shape(const Plan& plan, const Kernel& kernel);

// The same, for tiles of warpgroups: where windows of channels last follow one another without gaps or pads, as a
// vision transformer's patches do, each line of them is an image, and the positions of a line of a window are channels
// of one, if these fill chunks of 16 bytes.
ConvolutionShape lines_of_windows(const Plan& plan, const Kernel& kernel);

}  // namespace gopt
