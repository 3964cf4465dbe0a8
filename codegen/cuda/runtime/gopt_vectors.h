// Products of a few lines by weights of columns, of which each weight is read once: what a launch needs.
#pragma once

#include "gopt_tiles.h"

namespace gopt_runtime {

// The problem is that of a tile, of one matrix and one position a line. A kernel's rows are the lines that it makes at
// most, its columns those of a block.
constexpr int kVectorThreads = 128;

}  // namespace gopt_runtime
