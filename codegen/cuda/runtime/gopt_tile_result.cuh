// What is done with the sums of a tile: blocks that share its depth add theirs up, and bias, addend and activation are
// applied while they are at hand.
#pragma once

#include "gopt_activation.cuh"
#include "gopt_cluster.cuh"
#include "gopt_fragments.cuh"
#include "gopt_tile_problem.h"

namespace gopt_runtime {
namespace tiles {

template <int kCount>
__device__ __forceinline__ void clear_sums(float (*sums)[4]) {
#pragma unroll
  for (int n = 0; n < kCount; n++)
#pragma unroll
    for (int i = 0; i < 4; i++) sums[n][i] = 0;
}

// Sums of 16 rows as the tensor cores leave them in the registers of a warp, eight columns in each of `kCount`.
template <int kCount>
__device__ __forceinline__ void put_sums(float* to, int pitch, const float (*sums)[4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float* own = to + lane / 4 * pitch + lane % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; half++)
#pragma unroll
    for (int n = 0; n < kCount; n++)
      *reinterpret_cast<float2*>(own + half * 8 * pitch + n * 8) =
          make_float2(sums[n][half * 2], sums[n][half * 2 + 1]);
}

// Which rows of the result those of a tile are: one after another.
struct ConsecutiveRows {
  int first, end;
  __device__ __forceinline__ int row(int i) const { return first + i; }
  __device__ __forceinline__ bool has(int i) const { return first + i < end; }
};

// Of a tile that S::kThreads threads finish, four elements at a time: number `first` of them is a thread's first, and
// all of a thread's lie below each other.
template <class S, class Rows = ConsecutiveRows>
class TileResult {
 public:
  static constexpr int kPitch = S::kColumns + 8;  // floats of a row of sums: four rows lie in different banks
  static constexpr int kSumBytes = S::kRows * kPitch * 4;
  static constexpr int kFours = S::kColumns / 4;  // of a row

  __device__ __forceinline__ TileResult(const TileProblem& p, int first_row, int first_column, unsigned matrix,
                                        int first)
      : TileResult(p, Rows{first_row, p.rows}, first_column, matrix, first) {}
  __device__ __forceinline__ TileResult(const TileProblem& p, const Rows& rows, int first_column, unsigned matrix,
                                        int first)
      : p_(p), rows_(rows), first_column_(first_column), matrix_(matrix), result_(matrix * p.dst_step), first_(first) {}

  // What is added is on its way before the sums are made: the bias, and the first of the addends.
  __device__ __forceinline__ void fetch_bias() {
    of_type([this](auto zero) { load_bias<decltype(zero)>(); });
  }
  __device__ __forceinline__ void fetch_addend() {
    if (p_.addend) of_type([this](auto zero) { load_addend<decltype(zero)>(place_of(first_)).keep_in(addend_); });
  }

  // Of the sums in this block's shared memory, which the threads may still be writing. Of a cluster each block makes
  // its share of the results.
  __device__ __forceinline__ void finish(float* sums) const {
    if (gridDim.y == 1) {
      __syncthreads();
      return finish_each(S::kThreads, S::kRows * kFours,
                         [&](const Place& place) { return load_four(sums + place.in_tile); });
    }
#if __CUDA_ARCH__ >= 900
    wait_for_cluster();
    finish_each(static_cast<int>(gridDim.y) * S::kThreads, S::kRows * kFours, [&](const Place& place) {
      return sum_of([&](int block) { return load_four(in_block(sums, block) + place.in_tile); });
    });
    wait_for_cluster();  // nobody leaves while its memory is read
#endif
  }

  // Of `rows` rows of the tile, of which a thread's first element is the first: those of each block of the cluster lie
  // one after another.
  __device__ __forceinline__ void finish_rows(const float* sums, int rows) const {
    const int before = static_cast<int>(blockIdx.y) * rows;
    finish_each(S::kThreads, (before + rows) * kFours, [&](const Place& place) {
      const float* own = sums + place.in_tile - before * kPitch;
      return sum_of([&](int block) { return load_four(own + block * rows * kPitch); });
    });
  }

  // Each warp of its own 16 rows, which it puts into its own part of the shared memory.
  static __device__ __forceinline__ int first_of_warp(int thread) { return thread / 32 * 16 * kFours + thread % 32; }
  __device__ __forceinline__ void finish_by_warps(float* room, const float (*sums)[4]) const {
    static_assert(32 % kFours == 0, "a thread's places lie below each other");
    const int warp = static_cast<int>(threadIdx.x) / 32;
    put_sums<S::kColumns / 8>(room + warp * 16 * kPitch, kPitch, sums);
    __syncwarp();
    finish_each(32, (warp + 1) * 16 * kFours, [&](const Place& place) { return load_four(room + place.in_tile); });
    __syncwarp();
  }

 private:
  // Four elements of the result: where they are, and what is added to them.
  struct Place {
    int in_tile, row, column, count;  // none: not in the result
  };

  static __device__ __forceinline__ float4 load_four(const float* from) {
    return *reinterpret_cast<const float4*>(from);
  }

  template <class Do>
  __device__ __forceinline__ void of_type(const Do& run) const {
    switch (p_.result) {
      case Element::Float32: return run(0.0f);
      case Element::Float16: return run(gopt_half(0.0f));
      case Element::BFloat16: return run(gopt_bfloat16(0.0f));
    }
  }

  __device__ __forceinline__ Place place_of(int i) const {
    const int in_row = i / kFours, in_column = i % kFours * 4;
    const int column = first_column_ + in_column;
    const bool is_there = in_row < S::kRows && rows_.has(in_row) && column < p_.columns;
    return {in_row * kPitch + in_column, rows_.row(in_row), column, is_there ? min(4, p_.columns - column) : 0};
  }
  template <class Out>
  __device__ __forceinline__ Four<Out> load_addend(const Place& place) const {
    Four<Out> four;
    four.load(static_cast<const Out*>(p_.addend) + result_ + place.row * p_.addend_line + place.column, place.count,
              p_.is_aligned);
    return four;
  }
  template <class Out>
  __device__ __forceinline__ void load_bias() {
    static_assert(S::kThreads % kFours == 0, "a thread's places lie below each other");
    const int column = first_column_ + first_ % kFours * 4;
    Four<Out> four;
    four.load(static_cast<const Out*>(p_.bias) + matrix_ * p_.bias_step + column,
              p_.bias ? max(0, min(4, p_.columns - column)) : 0, p_.is_aligned);
    four.keep_in(bias_);
  }

  // Of the blocks that share a depth, in their order, so that results never change.
  template <class Part>
  __device__ __forceinline__ float4 sum_of(const Part& part) const {
    constexpr int kMostBlocks = 8;
    float4 parts[kMostBlocks];
#pragma unroll
    for (int block = 0; block < kMostBlocks; block++)
      if (block < gridDim.y) parts[block] = part(block);
    float4 sum = parts[0];
#pragma unroll
    for (int block = 1; block < kMostBlocks; block++)
      if (block < gridDim.y)
        sum.x += parts[block].x, sum.y += parts[block].y, sum.z += parts[block].z, sum.w += parts[block].w;
    return sum;
  }

  // From the first place of this thread to the end, in steps.
  template <class SumOf>
  __device__ __forceinline__ void finish_each(int step, int end, const SumOf& sum_at) const {
    of_type([&](auto zero) {
      using Out = decltype(zero);
      Four<Out> bias;
      bias.take_from(bias_);
      if (p_.addend)
        add_each<Out>(step, end, bias, sum_at);
      else
        for (int i = first_; i < end; i += step)
          if (const Place place = place_of(i); place.count > 0) store_four(place, sum_at(place), bias, Four<Out>());
    });
  }
  // Some addends at once are on their way while others are used: a place's may be where its result goes, but no
  // other's.
  template <class Out, class SumOf>
  __device__ __forceinline__ void add_each(int step, int end, const Four<Out>& bias, const SumOf& sum_at) const {
    constexpr int kAtOnce = 4;
    Four<Out> addends[kAtOnce];
    addends[0].take_from(addend_);
    const auto fetch = [&](int from, int first) {
#pragma unroll
      for (int k = first; k < kAtOnce; k++) addends[k] = load_addend<Out>(place_before(from + k * step, end));
    };
    fetch(first_, 1);
    for (int i = first_; i < end; i += kAtOnce * step) {
      Four<Out> own[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; k++) own[k] = addends[k];
      fetch(i + kAtOnce * step, 0);
#pragma unroll
      for (int k = 0; k < kAtOnce; k++) {
        const Place place = place_before(i + k * step, end);
        if (place.count > 0) store_four(place, sum_at(place), bias, own[k]);
      }
    }
  }
  __device__ __forceinline__ Place place_before(int i, int end) const {
    Place place = place_of(i);
    if (i >= end) place.count = 0;
    return place;
  }

  template <class Out>
  __device__ __forceinline__ void store_four(const Place& place, const float4& sum, const Four<Out>& bias,
                                             const Four<Out>& addend) const {
    float values[4] = {sum.x * p_.scale, sum.y * p_.scale, sum.z * p_.scale, sum.w * p_.scale};
#pragma unroll
    for (int k = 0; k < 4; k++) values[k] += bias[k];
#pragma unroll
    for (int k = 0; k < 4; k++) values[k] += addend[k];
    apply_activation<Out>(values, p_.activation);
    store_elements(static_cast<Out*>(p_.dst) + result_ + place.row * p_.dst_line + place.column, values, place.count,
                   p_.is_aligned);
  }

  const TileProblem& p_;
  Rows rows_;
  int first_column_;
  unsigned matrix_;
  int64_t result_;
  int first_;
  unsigned bias_[4], addend_[4];  // as they lie
};

}  // namespace tiles
}  // namespace gopt_runtime
