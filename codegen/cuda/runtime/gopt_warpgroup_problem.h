// What a kernel of warpgroups is given.
#pragma once

#include <cuda.h>

#include "gopt_tile_problem.h"

namespace gopt_runtime {

struct WarpgroupProblem {
  CUtensorMap left, right;  // of the source's windows and the weights
  TileProblem problem;
  int slices_of_tap = 1;  // of 128 bytes of channels
  // Of a convolution in groups, which are joined to runs that fill slices: a tile's columns are of one run, and read
  // its channels alone. Else all are one.
  int columns_of_run = 1, channels_of_run = 0;
  int tiles = 0;
  // Of constant weights, beyond the first stages: asked for before the kernel before has ended.
  int slices_in_cache = 0;
  bool is_stored_from_registers = false;  // RegisterResult (gopt_register_result.cuh)
  int stages = 0;                         // of the ring in shared memory
};

}  // namespace gopt_runtime
