// Depthwise convolutions and pools by kernels of our own on CUDA.
#pragma once

#include "gopt/convolution_shape.h"

namespace gopt {

// Kernel::implementation: a thread makes one position, or several of a line, or of a column.
constexpr const char* kByChannels = "channels";
constexpr const char* kByLinesOfChannels = "channels:4";
constexpr const char* kByColumnsOfChannels = "channels:column";
constexpr int kPositionsOfLine = 4;
bool is_by_channels(const Kernel& kernel);
// A mean over whole images.
bool is_mean_of_images(const Kernel& kernel);

// A convolution's numbers, or those of a pool of two axes or such a mean as if it were a depthwise convolution.
// Precondition: it is run so.
ConvolutionShape window_shape(const Plan& plan, const Kernel& kernel);
// Whether kernels are compiled for its window.
bool has_known_window(const ConvolutionShape& shape);

}  // namespace gopt
