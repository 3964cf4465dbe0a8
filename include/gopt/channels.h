// Depthwise convolutions and pools by kernels of our own on CUDA.
#pragma once

#include "gopt/convolution_shape.h"

namespace gopt {

constexpr const char* kByChannels = "channels";  // Kernel::implementation
bool is_by_channels(const Kernel& kernel);

// A pool of two axes as a depthwise convolution's numbers. Precondition: it is run so.
ConvolutionShape pool_shape(const Plan& plan, const Kernel& kernel);

}  // namespace gopt
