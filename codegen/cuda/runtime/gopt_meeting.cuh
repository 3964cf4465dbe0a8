// Sums and the like of what the threads of many blocks have, for kernels whose blocks share a row and are all on the
// device at once: they meet in its memory.
#pragma once

#include <cstdint>

#include "gopt_cluster.cuh"
#include "gopt_copies.cuh"

// The meetings of kBlocks blocks, those of one row (blockIdx.x). `memory`: five words for each block of each row, which
// are this kernel's alone, at a multiple of sixteen bytes, zero at first, and left to its next launch as they are.
// Blocks are of whole warps, a power of two of them, and all threads come to each meeting.
template <int kBlocks>
class gopt_meeting {
 public:
  explicit __device__ gopt_meeting(uint64_t* memory)
      : said_(memory + blockIdx.x * (kBlocks * 5)), time_((uint32_t)said_[kBlocks * 4 + blockIdx.y]) {}
  __device__ ~gopt_meeting() {
    if (threadIdx.x == 0) said_[kBlocks * 4 + blockIdx.y] = time_;
  }

  // The values of all threads of all blocks combined, in an order that is always the same; every thread gets the
  // result.
  template <class T, class Combine>
  __device__ T reduce(T value, Combine combine) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a number is said in words of four bytes");
    T* const room = static_cast<T*>(gopt_runtime::tiles::room_of_block());  // for the result, then for each warp
    const unsigned warps = blockDim.x / 32, lane = threadIdx.x % 32;
    time_++;
    value = of_warp(value, combine, 32);
    if (lane == 0) room[1 + threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {
      value = of_warp(room[1 + lane % warps], combine, warps);
      if (lane == 0) say(value);
      constexpr unsigned kLanes = kBlocks < 32 ? kBlocks : 32;
      value = of_warp(heard<kBlocks / kLanes, T>(lane % kLanes, combine), combine, kLanes);
      if (lane == 0) room[0] = value;
    }
    __syncthreads();
    value = room[0];
    __syncthreads();  // what is read stays there until it was
    return value;
  }

 private:
  template <class T, class Combine>
  static __device__ T of_warp(T value, Combine combine, unsigned lanes) {
    for (unsigned step = lanes / 2; step > 0; step /= 2)
      value = combine(value, (T)__shfl_xor_sync(0xffffffffu, value, (int)step));
    return value;
  }

  // Each half of a number lies beside how many have been said, by which those who wait know it from an older one. A
  // block may be a number ahead, no more: two of them are kept.
  __device__ uint64_t* at(unsigned block) const { return said_ + ((time_ & 1) * kBlocks + block) * 2; }
  template <class T>
  __device__ void say(T value) const {
    uint32_t halves[sizeof(T) / 4];
    memcpy(halves, &value, sizeof(T));
#pragma unroll
    for (unsigned h = 0; h < sizeof(T) / 4; h++)
      gopt_runtime::tiles::write_for_all(at(blockIdx.y) + h, (uint64_t)time_ << 32 | halves[h]);
  }
  // What every 32nd block says, from this one on, kEach of them: all is asked for until all has come.
  template <unsigned kEach, class T, class Combine>
  __device__ T heard(unsigned first, Combine combine) const {
    constexpr unsigned kHalves = sizeof(T) / 4;
    uint64_t words[kEach][2];
    bool has_come;
    do {
      has_come = true;
#pragma unroll
      for (unsigned k = 0; k < kEach; k++) gopt_runtime::tiles::read_anew(at(first + 32 * k), words[k][0], words[k][1]);
#pragma unroll
      for (unsigned k = 0; k < kEach; k++)
#pragma unroll
        for (unsigned h = 0; h < kHalves; h++) has_come = has_come && (uint32_t)(words[k][h] >> 32) == time_;
    } while (!has_come);
    T all;
#pragma unroll
    for (unsigned k = 0; k < kEach; k++) {
      const uint32_t halves[2] = {(uint32_t)words[k][0], (uint32_t)words[k][1]};
      T value;
      memcpy(&value, halves, sizeof(T));
      all = k == 0 ? value : combine(all, value);
    }
    return all;
  }

  uint64_t* const said_;
  uint32_t time_;  // how many numbers this block has said, by any launch
};
