// Tiles of whole warpgroups on Hopper's tensor cores (wgmma), filled by its copy engine (TMA): what a launch needs. For
// operands of 16 bits or in TF32; the others, and older devices, have gopt_tiles.h.
#pragma once

#include <cuda.h>

#include "gopt_tiles.h"

namespace gopt_runtime {

// Blocks of a cluster divide the depth of a tile; without, each may make several tiles.
struct WarpgroupProblem {
  CUtensorMap left, right;  // of the source's windows and the weights
  TileProblem problem;
  int slices_of_tap = 1;  // of 128 bytes of channels
  int tiles = 0;
  bool is_stored_from_registers = false;  // RegisterResult (gopt_register_result.cuh)
};

}  // namespace gopt_runtime
