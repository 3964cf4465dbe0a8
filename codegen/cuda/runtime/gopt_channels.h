// Windows over images of channels last whose channels have nothing to do with each other: depthwise convolutions and
// pools. Of a problem the weights are a channel's taps, one channel after another.
#pragma once

#include "gopt_tiles.h"

namespace gopt_runtime {

// Of a convolution whose groups are single channels, or of a pool.
TileProblem problem_of_channels(const Convolution& convolution, bool counts_outside);
// With so many channels to a thread.
void set_channel_operands(TileProblem& problem, const Operands& operands, int lanes);

}  // namespace gopt_runtime
