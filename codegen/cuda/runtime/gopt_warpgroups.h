// Tiles of whole warpgroups on Hopper's tensor cores (wgmma), filled by its copy engine (TMA): what a launch needs.
// Older devices have gopt_tiles.h.
#pragma once

#include "gopt_tiles.h"
#include "gopt_warpgroup_problem.h"

namespace gopt_runtime {

// Blocks of a cluster divide the depth of a tile; without, each may make several tiles.
// The weights of joined groups are written anew, for each column those of all channels of its run, zero where these are
// another group's: what of them is copied from a group's own. In bytes; the source's lines follow each other.
struct WeightsOfGroup {
  size_t from, to, width, height, line;
};
inline WeightsOfGroup weights_of_group(const Convolution& c, int joined, int64_t group) {
  const auto bytes = [](int64_t count) { return static_cast<size_t>(count); };
  const int64_t own = c.weights[1] * size_of(c.element), lines = c.weights[0] / c.groups * positions_of(c.weights);
  return {bytes(group * lines * own), bytes((group * lines * joined + group % joined) * own), bytes(own), bytes(lines),
          bytes(own * joined)};
}

}  // namespace gopt_runtime
