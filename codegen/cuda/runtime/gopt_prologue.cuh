// What a tile does to its left operand before it multiplies it, as this goes through the registers of the threads that
// multiply: a kernel of its own, and a tensor that is written and read, less. For windows of one tap that are positions,
// so that a place in the depth is a channel, and nothing of a window lies outside.
#pragma once

#include "gopt_fragments.cuh"
#include "gopt_tile_problem.h"

namespace gopt_runtime {
namespace tiles {

// Nothing; x scale[channel] + shift[channel], cut off at two numbers; x gate[image, channel].
enum class Before { Nothing, Channels, Gates };

// Two numbers of 16 bits in a word.
template <class T>
struct Pairs;
template <>
struct Pairs<gopt_half> {
  using Pair = __half2;
  static __device__ __forceinline__ Pair rounded(float a, float b) { return __floats2half2_rn(a, b); }
  static __device__ __forceinline__ float2 numbers(Pair pair) { return __half22float2(pair); }
};
template <>
struct Pairs<gopt_bfloat16> {
  using Pair = __nv_bfloat162;
  static __device__ __forceinline__ Pair rounded(float a, float b) { return __floats2bfloat162_rn(a, b); }
  static __device__ __forceinline__ float2 numbers(Pair pair) { return __bfloat1622float2(pair); }
};

// What is done to two neighbouring channels of a row.
template <class T, Before kBefore>
class PairFunction {
 public:
  using Pair = typename Pairs<T>::Pair;
  // Scale and shift of either channel, in floats; or both gates.
  using Numbers = std::conditional_t<kBefore == Before::Channels, float4, Pair>;

  __device__ __forceinline__ explicit PairFunction(const PrologueProblem& p)
      : least_(Pairs<T>::rounded(p.least, p.least)), largest_(Pairs<T>::rounded(p.largest, p.largest)) {}

  __device__ __forceinline__ unsigned operator()(unsigned word, const Numbers& numbers) const {
    Pair x;
    memcpy(&x, &word, sizeof x);
    if constexpr (kBefore == Before::Channels) {
      const float2 own = Pairs<T>::numbers(x);
      x = Pairs<T>::rounded(fmaf(own.x, numbers.x, numbers.y), fmaf(own.y, numbers.z, numbers.w));
      x = __hmin2_nan(__hmax2_nan(x, least_), largest_);
    } else {
      x = __hmul2(x, numbers);
    }
    memcpy(&word, &x, sizeof word);
    return word;
  }

 private:
  Pair least_, largest_;  // rounded as what they cut off is
};

// Of the fragments of 16 rows by 16 channels of 16 bits of which a thread has two rows and two pairs of channels.
template <class Operand, Before kBefore>
class FragmentPrologue {
 public:
  using T = typename Operand::Stored;
  using Function = PairFunction<T, kBefore>;

  // `row` is the first of the two rows, the other one lies 8 behind.
  __device__ __forceinline__ FragmentPrologue(const TileProblem& p, int row)
      : p_(p), function_(p.prologue), first_(static_cast<int>(threadIdx.x) % 4 * 2) {
    if constexpr (kBefore == Before::Gates) {
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const int image = min(row + i * 8, p.rows - 1) / p.prologue.positions;
        gates_[i] = static_cast<const T*>(p.prologue.gates) + image * p.channels;
      }
    }
  }

  // Constants of some channels, into the first cache, by the threads of a warpgroup.
  static __device__ __forceinline__ void bring(const TileProblem& p, int channel, int channels) {
    constexpr int kSector = 8;  // floats
    if constexpr (kBefore == Before::Channels)
      for (int i = static_cast<int>(threadIdx.x) % 128 * kSector; i < 2 * channels; i += 128 * kSector)
        asm volatile("" ::"f"(p.prologue.lines[2 * channel + i]));
  }

  // What a fragment takes: of either pair of channels, for each row where these differ. It is on its way from when it is
  // asked for.
  static constexpr int kRows = kBefore == Before::Gates ? 2 : 1;
  struct Numbers {
    typename Function::Numbers of[2][kRows];
  };
  // Of 16 channels from that one on.
  __device__ __forceinline__ void fetch(Numbers& numbers, int channel) const {
#pragma unroll
    for (int pair = 0; pair < 2; pair++) {
      const int own = channel + first_ + pair * 8;
      if constexpr (kBefore == Before::Channels) {
        numbers.of[pair][0] = *reinterpret_cast<const float4*>(p_.prologue.lines + 2 * own);
      } else {
        // Weights of channels that are not there are zero, a gate need not be.
#pragma unroll
        for (int i = 0; i < 2; i++)
          numbers.of[pair][i] = own < p_.channels ? *reinterpret_cast<const typename Function::Pair*>(gates_[i] + own)
                                                  : Pairs<T>::rounded(0, 0);
      }
    }
  }

  __device__ __forceinline__ void apply(unsigned* fragment, const Numbers& numbers) const {
#pragma unroll
    for (int pair = 0; pair < 2; pair++)
#pragma unroll
      for (int i = 0; i < 2; i++)
        fragment[pair * 2 + i] = function_(fragment[pair * 2 + i], numbers.of[pair][i % kRows]);
  }

 private:
  const TileProblem& p_;
  const Function function_;
  const int first_;  // of a step's channels, this thread's
  const T* gates_[2] = {};
};

}  // namespace tiles
}  // namespace gopt_runtime
