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
  bool is_all_at_once = false;
};

// What the device has.
inline bool clusters = true, fits = true;
inline int64_t shared_bytes = 64 * 1024;
inline bool has_clusters() { return clusters; }
inline int most_blocks_of_cluster(const void*, int) { return clusters ? 8 : 1; }
inline int64_t most_shared_bytes() { return shared_bytes; }
inline void let_ask_for(const void*, int64_t bytes) {
  if (bytes > shared_bytes) std::abort();
}
template <class... Parameters>
bool fits_at_once(void (*)(Parameters...), int64_t, int64_t of_each, int64_t) {
  return fits && of_each <= static_cast<int64_t>(emulation::kMostBlocks);
}

// Those of a row, or of a cluster, after those of another.
template <class... Parameters, class... Arguments>
void launch_with(void (*kernel)(Parameters...), const Launch& launch, cudaStream_t, Arguments... arguments) {
  emulation::launch(launch.grid, launch.threads.x, [=] { kernel(arguments...); });
}
template <class... Parameters, class... Arguments>
void launch_cluster_kernel(void (*kernel)(Parameters...), int64_t blocks, int64_t cluster, int64_t threads,
                           cudaStream_t stream, Arguments... arguments) {
  launch_with(kernel,
              {.grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(cluster)),
               .threads = dim3(static_cast<unsigned>(threads))},
              stream, arguments...);
}
template <class... Parameters, class... Arguments>
void launch_all_at_once(void (*kernel)(Parameters...), int64_t blocks, int64_t of_each, int64_t threads,
                        cudaStream_t stream, Arguments... arguments) {
  launch_cluster_kernel(kernel, blocks, of_each, threads, stream, arguments...);
}
template <class... Parameters, class... Arguments>
void launch_kernel(void (*kernel)(Parameters...), int64_t blocks, int64_t threads, cudaStream_t stream,
                   Arguments... arguments) {
  launch_cluster_kernel(kernel, blocks, 1, threads, stream, arguments...);
}

}  // namespace gopt_runtime
