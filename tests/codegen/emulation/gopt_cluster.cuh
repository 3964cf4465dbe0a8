// In place of the runtime's: clusters of blocks, as the kernels of tiles ask for them.
#pragma once

#include "device.h"

namespace gopt_runtime {
namespace tiles {

inline void wait_for_cluster() { emulation::cluster_barrier.arrive_and_wait(); }
inline const float* in_block(const float* own, int block) {
  const auto offset = reinterpret_cast<const char*>(own) - emulation::own_block().memory;
  return reinterpret_cast<const float*>(emulation::blocks[static_cast<size_t>(block)].memory + offset);
}

}  // namespace tiles
}  // namespace gopt_runtime
