// Short kernels that read each other's results, as steps that a cluster of blocks takes one after another: a barrier of
// the cluster stands where a launch would. Steps that are other chains' are taken by other clusters. A step reads
// weights first, then waits for what steps before it wrote, where it reads that.
#pragma once

#include "gopt_cluster.cuh"
#include "gopt_half.cuh"
#include "gopt_launch.h"
#include "gopt_math.cuh"

namespace gopt_runtime {
namespace sequences {

constexpr int kThreads = 512, kMostOperands = 12;

// What a step waits for: what threads of its block, or of the cluster, wrote.
enum class Waits { Nothing, Block, Cluster };

// What this thread wrote before can be read by those that wait; between that and the wait a thread may read what no
// step writes. On a device without clusters a chain has one block.
__device__ __forceinline__ void arrive(Waits waits) {
#if __CUDA_ARCH__ >= 900
  if (waits == Waits::Cluster) tiles::arrive_at_cluster();
#endif
}
__device__ __forceinline__ void wait(Waits waits) {
#if __CUDA_ARCH__ >= 900
  if (waits == Waits::Cluster) tiles::leave_cluster();
  if (waits == Waits::Block) __syncthreads();
#else
  if (waits != Waits::Nothing) __syncthreads();
#endif
}

// Numbers below `all` that a block has: those that are in its part of a period, of which all is a multiple. Blocks are
// of a number that is a power of two, sixteen at most.
class Units {
 public:
  __device__ __forceinline__ Units(unsigned period, unsigned all)
      : period_(period),
        all_(all),
        of_block_((period + gridDim.y - 1) >> ((gridDim.y > 1) + (gridDim.y > 2) + (gridDim.y > 4) + (gridDim.y > 8))),
        share_(gopt_short_reciprocal(static_cast<float>(of_block_))) {}
  __device__ __forceinline__ unsigned count() const { return all_ / period_ * of_block_; }
  // Not below `all` where it has one less.
  __device__ __forceinline__ unsigned number(unsigned own) const {
    const auto periods = static_cast<unsigned>((static_cast<float>(own) + 0.5f) * share_);  // of fewer than 2^20
    const unsigned unit = blockIdx.y * of_block_ + own - periods * of_block_;
    return unit < period_ ? periods * period_ + unit : all_;
  }

 private:
  const unsigned period_, all_, of_block_;
  const float share_;
};

// Which function, and where its operands are, the result last: the number of a base above so many bits, and bytes.
constexpr int kBitsOfBytes = 48;
constexpr unsigned kShared = 0xffff;  // the base that is a block's shared memory
struct Step {
  int function;
  Waits waits;
  uint64_t places[kMostOperands];
};
template <int kBases>
struct Bases {
  char* at[kBases];
};
// Of at most so many, in shared memory: what is looked up elsewhere after a barrier takes longer than a short step.
template <int kOperands>
struct Operands {
  int function;
  Waits waits;
  char* at[kOperands];
};

constexpr int kAtOnce = 64;
template <int kOperands>
struct StepsAtOnce {
  Operands<kOperands> steps[kAtOnce];
};
// Tensors that a block makes and reads alone.
template <int kBytes>
struct OwnTensors {
  alignas(16) char bytes[kBytes];
};

template <int kOperands, int kBases>
__device__ __forceinline__ void look_up(Operands<kOperands>& o, const Step& step, const Bases<kBases>& bases,
                                        char* shared) {
  o.function = step.function, o.waits = step.waits;
#pragma unroll
  for (int i = 0; i < kOperands; i++) {
    const auto base = static_cast<unsigned>(step.places[i] >> kBitsOfBytes);
    const uint64_t bytes = step.places[i] & ((uint64_t{1} << kBitsOfBytes) - 1);
    o.at[i] = (base == kShared ? shared : bases.at[base]) + bytes;
  }
}

// Takes the block's chain, of which some steps are looked up at a time.
template <int kOperands, int kBases, class Take>
__device__ __forceinline__ void take_steps(const Step* steps, const int* ends, const Bases<kBases>& bases, char* shared,
                                           const Take& take) {
  Operands<kOperands>* const now = tiles::shared_of_block<StepsAtOnce<kOperands>>().steps;
  gopt_let_next_begin();
  const int first = blockIdx.x == 0 ? 0 : ends[blockIdx.x - 1], end = ends[blockIdx.x];
  gopt_wait();
  for (int some = first; some < end; some += kAtOnce) {
    const int count = end - some < kAtOnce ? end - some : kAtOnce;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
      look_up(now[i], steps[some + i], bases, shared);
    __syncthreads();
    for (int i = 0; i < count; i++) take(now[i]);
  }
}

template <class Bases>
void launch(void (*kernel)(Bases), int chains, cudaStream_t stream, Bases bases) {
  launch_cluster_kernel(kernel, chains, most_blocks_of_cluster(reinterpret_cast<const void*>(kernel), kThreads),
                        kThreads, stream, bases);
}

}  // namespace sequences
}  // namespace gopt_runtime
