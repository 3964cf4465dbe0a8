// In place of the runtime's: there is no kernel before this one.
#pragma once

#include "device.h"

inline void gopt_let_next_begin() {}
inline void gopt_wait() {}
template <class Parameters>
inline void gopt_touch(const Parameters&) {}

namespace gopt_runtime {

struct Launch {
  dim3 grid, threads;
  size_t shared_bytes = 0;
  int cluster = 1;
};

inline bool clusters = true;
inline bool has_clusters() { return clusters; }

inline int most_blocks_of_cluster(const void*, int) { return clusters ? static_cast<int>(emulation::kMostBlocks) : 1; }

template <class... Parameters, class... Arguments>
void launch_cluster_kernel(void (*kernel)(Parameters...), int64_t blocks, int64_t cluster, int64_t threads,
                           cudaStream_t, Arguments... arguments) {
  emulation::launch(dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(cluster)), static_cast<unsigned>(threads),
                    [=] { kernel(arguments...); });
}
template <class... Parameters, class... Arguments>
void launch_kernel(void (*kernel)(Parameters...), int64_t blocks, int64_t threads, cudaStream_t stream,
                   Arguments... arguments) {
  launch_cluster_kernel(kernel, blocks, 1, threads, stream, arguments...);
}

}  // namespace gopt_runtime
