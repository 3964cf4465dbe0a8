// Windows over images of channels last whose channels have nothing to do with each other: depthwise convolutions,
// pools and means over whole images. Of a problem the weights are a channel's taps, one channel after another.
#pragma once

#include "gopt_tile_problem.h"

namespace gopt_runtime {

struct Convolution;  // gopt_library.h
struct Operands;

// Of a convolution whose groups are single channels, or of a pool.
TileProblem problem_of_channels(const Convolution& convolution, bool counts_outside);
// Channels that a thread makes: sixteen bytes.
constexpr int lanes_of(Element element) { return 16 / static_cast<int>(size_of(element)); }
void set_channel_operands(TileProblem& problem, const Operands& operands);

}  // namespace gopt_runtime
