// Clusters of blocks, as the kernels of tiles ask for them.
#pragma once

#include "device.h"

namespace cooperative_groups {

struct cluster_group {
  void sync() const { emulation::cluster_barrier->arrive_and_wait(); }
  template <class T>
  T* map_shared_rank(T* own, int block) const {
    const auto offset = reinterpret_cast<char*>(own) - emulation::own_block().memory;
    return reinterpret_cast<T*>(emulation::blocks[static_cast<size_t>(block)].memory + offset);
  }
};
inline cluster_group this_cluster() { return {}; }

}  // namespace cooperative_groups
