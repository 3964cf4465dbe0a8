// Depthwise convolutions and pools by kernels of our own on CUDA.
#pragma once

#include <limits>

#include "gopt/convolution_shape.h"
#include "gopt/runtime/gopt_channel_rectangle.h"

namespace gopt {

// Kernel::implementation: a thread makes one position, or several of a line; or a block makes a rectangle, of lines by
// positions by what of these a thread makes.
constexpr const char* kByChannels = "channels";
constexpr const char* kByLinesOfChannels = "channels:4";
constexpr int kPositionsOfLine = 4;
struct ChannelTiles {
  const char* name;
  gopt_runtime::ChannelRectangle rectangle;
};
constexpr ChannelTiles kChannelTiles[] = {
    {"channels:8x8:8", {8, 8, 8, 64}}, {"channels:4x8:4", {4, 8, 4, 64}}, {"channels:4x8:2", {4, 8, 2, 32}}};
// Null where a kernel is run otherwise.
const ChannelTiles* channel_tiles_of(const Kernel& kernel);
bool is_by_channels(const Kernel& kernel);
// A mean over whole images.
bool is_mean_of_images(const Kernel& kernel);

// A convolution's numbers, or those of a pool of two axes or such a mean as if it were a depthwise convolution.
// Precondition: it is run so.
ConvolutionShape window_shape(const Plan& plan, const Kernel& kernel);
// A window as rectangles of planes go over it: its extents, of which an image's has one plane.
struct WindowOfPlanes {
  int64_t planes, height, width;
  int64_t step = std::numeric_limits<int64_t>::max();  // along lines and columns, where it is the same
  bool is_undilated = false;                           // within planes
};
WindowOfPlanes window_of_planes(const ConvolutionShape& shape);
// Whether kernels are compiled for its window.
bool has_known_window(const ConvolutionShape& shape);

}  // namespace gopt
