// Products of a few lines by weights of columns, of which each weight is read once: launched as tiles of so many rows,
// of one matrix and one position a line. A column's weights are divided among the lanes of a warp, or of all warps of a block, in
// chunks of sixteen bytes, some of which are asked for before the kernel before has ended. Sums are added in an order
// that is always the same.
#pragma once

#include "gopt_activation.cuh"
#include "gopt_fragments.cuh"
#include "gopt_launch.h"
#include "gopt_tile_problem.h"

namespace gopt_runtime {
namespace tiles {

constexpr int kVectorThreads = 128;

// What follows a sum, before it is stored.
template <class Out>
__device__ __forceinline__ void finish_sum_as(const TileProblem& p, float value, int line, int column) {
  float four[4] = {value, 0.0f, 0.0f, 0.0f};  // which activations take
  if (p.bias) four[0] += (float)static_cast<const Out*>(p.bias)[column];
  if (p.addend) four[0] += (float)static_cast<const Out*>(p.addend)[line * p.addend_line + column];
  apply_activation<Out>(four, p.activation);
  static_cast<Out*>(p.dst)[line * p.dst_line + column] = Out(four[0]);
}
__device__ __forceinline__ void finish_sum(const TileProblem& p, float value, int line, int column) {
  switch (p.result) {
    case Element::Float32: return finish_sum_as<float>(p, value, line, column);
    case Element::Float16: return finish_sum_as<gopt_half>(p, value, line, column);
    case Element::BFloat16: return finish_sum_as<gopt_bfloat16>(p, value, line, column);
  }
}

template <class Operand, int kLines, int kWarpsOfColumn>
class VectorProduct {
 public:
  using T = typename Operand::Stored;
  static constexpr int kWarps = kVectorThreads / 32, kColumns = kWarps / kWarpsOfColumn;

  __device__ __forceinline__ explicit VectorProduct(const TileProblem& p)
      : p_(p),
        column_(static_cast<int>(blockIdx.x) * kColumns + warp() / kWarpsOfColumn),
        first_(warp() % kWarpsOfColumn * 32 + lane()),
        chunks_(column_ < p.columns ? p.depth / kOfChunk : 0),
        weights_(static_cast<const T*>(p.weights) + static_cast<int64_t>(column_) * p.line_of_weights) {}

  __device__ __forceinline__ void run() {
    if (!p_.has_constant_weights) gopt_wait();
    uint4 ahead[kAhead];
    fetch(ahead, first_);
    if (p_.has_constant_weights) gopt_wait();
    for (int i = first_; i < chunks_; i += kAhead * kStep) {
      uint4 now[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; k++) now[k] = ahead[k];
      fetch(ahead, i + kAhead * kStep);
#pragma unroll
      for (int k = 0; k < kAhead; k++)
        if (i + k * kStep < chunks_) add(now[k], i + k * kStep);
    }
    add_up();
  }

 private:
  static constexpr int kOfChunk = kChunk / static_cast<int>(sizeof(T)), kAhead = 8, kStep = kWarpsOfColumn * 32;

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static __device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x) / 32; }

  __device__ __forceinline__ void fetch(uint4* chunks, int first) const {
#pragma unroll
    for (int k = 0; k < kAhead; k++)
      if (first + k * kStep < chunks_)
        chunks[k] = *reinterpret_cast<const uint4*>(weights_ + (first + k * kStep) * kOfChunk);
  }

  __device__ __forceinline__ void add(const uint4& weights, int chunk) {
    const T* w = reinterpret_cast<const T*>(&weights);
#pragma unroll
    for (int line = 0; line < kLines; line++) {
      if (line >= p_.rows) continue;
      const uint4 left =
          *reinterpret_cast<const uint4*>(static_cast<const T*>(p_.src) + line * p_.src_line + chunk * kOfChunk);
      const T* x = reinterpret_cast<const T*>(&left);
#pragma unroll
      for (int k = 0; k < kOfChunk; k++) sums_[line] += (float)x[k] * (float)w[k];
    }
  }

  __device__ __forceinline__ void add_up() {
#pragma unroll
    for (int line = 0; line < kLines; line++)
#pragma unroll
      for (int step = 16; step > 0; step /= 2) sums_[line] += __shfl_xor_sync(0xffffffffu, sums_[line], step);
    float sum = 0.0f;  // of the line that the lane finishes
#pragma unroll
    for (int line = 0; line < kLines; line++)
      if (line == lane()) sum = sums_[line];
    if constexpr (kWarpsOfColumn > 1) {
      extern __shared__ __align__(128) char shared[];
      float* parts = reinterpret_cast<float*>(shared);
      if (lane() < kLines) parts[warp() * kLines + lane()] = sum;
      __syncthreads();
      if (warp() > 0 || lane() >= kLines) return;
      sum = 0.0f;
#pragma unroll
      for (int w = 0; w < kWarpsOfColumn; w++) sum += parts[w * kLines + lane()];
    }
    if (lane() < p_.rows && lane() < kLines && column_ < p_.columns) finish_sum(p_, sum * p_.scale, lane(), column_);
  }

  const TileProblem& p_;
  int column_, first_, chunks_;
  const T* weights_;
  float sums_[kLines] = {};
};

template <class Operand, int kLines, int kWarpsOfColumn>
__global__ void __launch_bounds__(kVectorThreads) vector_kernel(const __grid_constant__ TileProblem problem) {
  gopt_let_next_begin();
  gopt_touch(problem);
  VectorProduct<Operand, kLines, kWarpsOfColumn>(problem).run();
}

template <class Operand, int kLines, int kWarpsOfColumn>
TileKernel make_vectors() {
  using Product = VectorProduct<Operand, kLines, kWarpsOfColumn>;
  constexpr int kPartBytes = kWarpsOfColumn > 1 ? kWarpsOfColumn * kLines * 4 : 0;
  return {reinterpret_cast<const void*>(vector_kernel<Operand, kLines, kWarpsOfColumn>), kLines, Product::kColumns,
          kVectorThreads, kPartBytes};
}

}  // namespace tiles
}  // namespace gopt_runtime
