// Rows of kernels that go over windows of channels side by side.
#pragma once

#include <vector>

#include "gopt/channels.h"
#include "implementations.h"

namespace gopt::planner {

// Whether a kernel is a pool that can be run so.
bool pools_channels(const Plan& plan, const Kernel& kernel);

std::vector<Implementation> channel_implementations();

}  // namespace gopt::planner
