// In place of the runtime's: clusters of blocks, as the kernels of tiles ask for them.
#pragma once

#include "device.h"

namespace gopt_runtime {
namespace tiles {

// Of a block, as long as the program runs.
template <class T>
T& shared_of_block() {
  static const size_t offset = emulation::reserve(sizeof(T));
  return *reinterpret_cast<T*>(emulation::own_block().memory + offset);
}
inline void arrive_at_cluster() {}
inline void leave_cluster() { emulation::cluster_barrier.arrive_and_wait(); }
inline void wait_for_cluster() { emulation::cluster_barrier.arrive_and_wait(); }
template <class T>
const T* in_block(const T* own, int block) {
  const auto offset = reinterpret_cast<const char*>(own) - emulation::own_block().memory;
  return reinterpret_cast<const T*>(emulation::blocks[static_cast<size_t>(block)].memory + offset);
}
inline void* room_of_block() { return emulation::own_block().memory; }

}  // namespace tiles
}  // namespace gopt_runtime
