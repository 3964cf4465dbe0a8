// Where a plan's buffers lie in memory.
#pragma once

#include "gopt/plan.h"

namespace gopt {

// The buffer that is no view, through all views, and where in it.
struct BufferRoot {
  BufferId buffer{};
  int64_t offset = 0;  // bytes
  Index inside;        // the same at any size of open extents
  friend bool operator==(const BufferRoot&, const BufferRoot&) = default;
};
BufferRoot root_of(const Plan& plan, BufferId id);

// What a buffer takes of the arena or of the weights: whole cache lines, so that each begins on one.
int64_t aligned_size(int64_t bytes);
// The same for a weight, by whose offset it is told from others: an empty one has a place of its own, too.
int64_t place_of_weight(int64_t bytes);

}  // namespace gopt
