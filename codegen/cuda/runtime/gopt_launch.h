// Launches that wait for the kernel before them by themselves (programmatic dependent launch): the next grid is set up,
// and what it reads of weights fetched, while the last one ends. A kernel launched so calls gopt_wait() before it reads
// what another made and before it writes, whether it needs to or not: the one after it waits for it alone.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "gopt_settings.h"

#ifdef __CUDACC__
// What comes next may be set up.
__device__ __forceinline__ void gopt_let_next_begin() {
#if GOPT_DEPENDENT_LAUNCH && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// Until all that was launched before is done and its results can be read.
__device__ __forceinline__ void gopt_wait() {
#if GOPT_DEPENDENT_LAUNCH && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Has a kernel's parameters in the constant cache, a line by each warp in turn: a line that is first read where results
// are stored is waited for there, some hundred cycles each.
template <class Parameters>
__device__ __forceinline__ void gopt_touch(const Parameters& parameters) {
  constexpr unsigned kOfLine = 16;  // words
  const unsigned* words = reinterpret_cast<const unsigned*>(&parameters);
  for (unsigned i = threadIdx.x / 32 * kOfLine; i < sizeof(Parameters) / 4; i += blockDim.x / 32 * kOfLine)
    asm volatile("" ::"r"(words[i]));
}
#endif

namespace gopt_runtime {

// Whether the device has dependent launches and clusters of blocks, and the code that it runs was built for them (sm_90
// and later): what was built for sm_80 runs there, too, without the instructions by which kernels wait for one another.
bool has_clusters();

// Whether the device multiplies by whole warpgroups, and the code was built for that (sm_90a).
bool has_warpgroups();

struct Launch {
  dim3 grid, threads;
  size_t shared_bytes = 0;
  int cluster = 1;              // blocks along y that share their memory
  bool is_all_at_once = false;  // all blocks are there before one begins, as they wait for each other
};

inline cudaError_t launch_dependent(const void* kernel, const Launch& launch, void** arguments, cudaStream_t stream) {
  cudaLaunchAttribute attributes[3];
  cudaLaunchConfig_t config{};
  config.gridDim = launch.grid;
  config.blockDim = launch.threads;
  config.dynamicSmemBytes = launch.shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  if (launch.is_all_at_once) {
    cudaLaunchAttribute& cooperative = attributes[config.numAttrs++];
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
  } else if (GOPT_DEPENDENT_LAUNCH && has_clusters()) {
    cudaLaunchAttribute& dependent = attributes[config.numAttrs++];
    dependent.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    dependent.val.programmaticStreamSerializationAllowed = 1;
  }
  if (launch.cluster > 1) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = 1;
    cluster.val.clusterDim.y = static_cast<unsigned>(launch.cluster);
    cluster.val.clusterDim.z = 1;
  }
  return cudaLaunchKernelExC(&config, kernel, arguments);
}

// Errors are found by cudaGetLastError after all launches.
template <class... Parameters, class... Arguments>
void launch_with(void (*kernel)(Parameters...), const Launch& launch, cudaStream_t stream, Arguments... arguments) {
  static_assert((std::is_same_v<Parameters, Arguments> && ...), "arguments are passed by their address");
  void* passed[] = {static_cast<void*>(&arguments)...};
  launch_dependent(reinterpret_cast<const void*>(kernel), launch, passed, stream);
}
// Each of `blocks` is a cluster of so many.
template <class... Parameters, class... Arguments>
void launch_cluster_kernel(void (*kernel)(Parameters...), int64_t blocks, int64_t cluster, int64_t threads,
                           cudaStream_t stream, Arguments... arguments) {
  launch_with(kernel,
              {.grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(cluster)),
               .threads = dim3(static_cast<unsigned>(threads)),
               .cluster = static_cast<int>(cluster)},
              stream, arguments...);
}
template <class... Parameters, class... Arguments>
void launch_kernel(void (*kernel)(Parameters...), int64_t blocks, int64_t threads, cudaStream_t stream,
                   Arguments... arguments) {
  launch_cluster_kernel(kernel, blocks, 1, threads, stream, arguments...);
}
// `of_each` blocks for each of `blocks`, which wait for each other; fits_at_once() says whether they may.
template <class... Parameters, class... Arguments>
void launch_all_at_once(void (*kernel)(Parameters...), int64_t blocks, int64_t of_each, int64_t threads,
                        cudaStream_t stream, Arguments... arguments) {
  launch_with(kernel,
              {.grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(of_each)),
               .threads = dim3(static_cast<unsigned>(threads)),
               .is_all_at_once = true},
              stream, arguments...);
}

// Whether the device tells what is asked; of what it does not no error is left, which the next launch would be blamed
// for.
template <class Ask>
bool tells(const Ask& ask) {
  const bool was_well = cudaPeekAtLastError() == cudaSuccess, is_told = ask();
  if (!is_told && was_well) (void)cudaGetLastError();
  return is_told;
}

// A number of the device that is in use; zero where there is none.
inline int number_of_device(cudaDeviceAttr which) {
  int device = 0, number = 0;
  const bool is_known = tells([&] {
    return cudaGetDevice(&device) == cudaSuccess && cudaDeviceGetAttribute(&number, which, device) == cudaSuccess;
  });
  return is_known ? number : 0;
}
// Bytes of shared memory that a block may ask for, and that a kernel's blocks will.
inline int64_t most_shared_bytes() { return number_of_device(cudaDevAttrMaxSharedMemoryPerBlockOptin); }
inline void let_ask_for(const void* kernel, int64_t shared_bytes) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
}

// Blocks of a kernel that a multiprocessor has at once; zero where that is not known.
inline int blocks_of_multiprocessor(const void* kernel, int64_t threads, int64_t shared_bytes) {
  int blocks = 0;
  const bool is_known = tells([&] {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, static_cast<int>(threads),
                                                         static_cast<size_t>(shared_bytes)) == cudaSuccess;
  });
  return is_known ? blocks : 0;
}
// Whether the device has room for all of these at once, when it does nothing else.
template <class... Parameters>
bool fits_at_once(void (*kernel)(Parameters...), int64_t blocks, int64_t of_each, int64_t threads) {
  return blocks * of_each <= static_cast<int64_t>(number_of_device(cudaDevAttrMultiProcessorCount)) *
                                 blocks_of_multiprocessor(reinterpret_cast<const void*>(kernel), threads, 0);
}

// That clusters of a kernel's blocks of so many threads may have: sixteen where the device has such, else eight; one
// without clusters.
inline int most_blocks_of_cluster(const void* kernel, int threads) {
  constexpr int kMany = 16, kSome = 8;
  if (!has_clusters()) return 1;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.y = kMany, attribute.val.clusterDim.x = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1, kMany), config.blockDim = dim3(static_cast<unsigned>(threads));
  config.attrs = &attribute, config.numAttrs = 1;
  int clusters = 0;
  const bool has_many = tells([&] {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess &&
           cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess && clusters > 0;
  });
  return has_many ? kMany : kSome;
}

}  // namespace gopt_runtime
