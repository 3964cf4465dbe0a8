// What a tile does to its left operand before it multiplies it, as this comes from shared memory into registers: a
// kernel of its own, and a tensor that is written and read, less. For windows of one tap that are positions, so that
// a place in the depth is a channel, and nothing of a window lies outside.
//
// A row that is normalized (less its mean, over its deviation, times a factor and plus a number for each channel) is not
// known before all of it was read. But a product with it is one with the row itself, times the factors:
//   sum_k ((x_k - mean) / deviation f_k + s_k) w_k = (sum_k x_k f_k w_k - mean sum_k f_k w_k) / deviation + sum_k s_k w_k
// of which the sums without x are the column's, and the row's mean and deviation are summed up on the way. x_k f_k, which
// is rounded, must not be infinite where the normalized row is small: factors are of one at most, times what is left.
#pragma once

#include "gopt_fragments.cuh"
#include "gopt_math.cuh"
#include "gopt_tile_problem.h"

namespace gopt_runtime {
namespace tiles {

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

// Nothing; x scale[channel] + shift[channel], cut off at two numbers; x gate[image, channel]; rows normalized.
enum class Before { Nothing, Channels, Gates, Rows };

// Of the two rows of a fragment, as far as they were read.
struct Moments {
  float sum[2] = {}, squares[2] = {};
};

// Of the fragments of 16 rows by 16 channels of 16 bits of which a thread has two rows and two pairs of channels.
template <class Operand, Before kBefore>
class Prologue {
 public:
  using T = typename Operand::Stored;
  using Pair = typename Pairs<T>::Pair;
  static_assert(sizeof(T) == 2, "of numbers of 16 bits");

  // `row` is the first of the two rows, the other one lies 8 behind.
  __device__ __forceinline__ Prologue(const TileProblem& p, int row)
      : p_(p),
        first_(static_cast<int>(threadIdx.x) % 4 * 2),
        least_(Pairs<T>::rounded(p.prologue.least, p.prologue.least)),
        largest_(Pairs<T>::rounded(p.prologue.largest, p.prologue.largest)) {
    if constexpr (kBefore == Before::Gates) {
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const int image = min(row + i * 8, p.rows - 1) / p.prologue.positions;
        gates_[i] = static_cast<const T*>(p.prologue.gates) + image * p.channels + first_;
      }
    }
  }

  // What a fragment takes, which is on its way from when it is asked for.
  struct Numbers {
    float4 lines[2];   // scale, shift, scale, shift of each pair of channels
    Pair gates[2][2];  // of each row
  };
  // Of the step, of 16 channels, from that channel on.
  __device__ __forceinline__ void fetch(Numbers& numbers, int channel, int step) const {
#pragma unroll
    for (int pair = 0; pair < 2; pair++) {
      const int in_slice = step * 16 + pair * 8;
      if constexpr (kBefore != Before::Gates) {
        numbers.lines[pair] =
            *reinterpret_cast<const float4*>(p_.prologue.lines + 2 * (channel + first_) + 2 * in_slice);
      } else {
        // Weights of channels that are not there are zero, a gate need not be.
        const bool is_there = channel + in_slice < p_.channels;
#pragma unroll
        for (int i = 0; i < 2; i++)
          numbers.gates[pair][i] =
              is_there ? *reinterpret_cast<const Pair*>(gates_[i] + channel + in_slice) : Pairs<T>::rounded(0, 0);
      }
    }
  }

  __device__ __forceinline__ void apply(unsigned* fragment, const Numbers& numbers, Moments& moments) const {
#pragma unroll
    for (int pair = 0; pair < 2; pair++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        Pair x;
        memcpy(&x, &fragment[pair * 2 + i], sizeof x);
        if constexpr (kBefore == Before::Gates) {
          x = __hmul2(x, numbers.gates[pair][i]);
        } else {
          const float2 own = Pairs<T>::numbers(x);
          const float4 lines = numbers.lines[pair];
          if constexpr (kBefore == Before::Rows) {
            moments.sum[i] += own.x + own.y;
            moments.squares[i] = fmaf(own.x, own.x, fmaf(own.y, own.y, moments.squares[i]));
            x = Pairs<T>::rounded(own.x * lines.x, own.y * lines.z);
          } else {
            x = Pairs<T>::rounded(fmaf(own.x, lines.x, lines.y), fmaf(own.y, lines.z, lines.w));
            x = __hmin2_nan(__hmax2_nan(x, least_), largest_);
          }
        }
        memcpy(&fragment[pair * 2 + i], &x, sizeof x);
      }
  }

  // The products of normalized rows: of sums of 16 rows by kCount times 8 columns from `column` on. All of the rows was
  // read, by the four threads that have a part of each.
  template <int kCount>
  __device__ __forceinline__ void finish(float (*sums)[4], const Moments& moments, int column) const {
    if constexpr (kBefore == Before::Rows) {
      float mean[2], factor[2];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        mean[i] = of_four(moments.sum[i]) / p_.channels;
        const float variance = gopt_max(of_four(moments.squares[i]) / p_.channels - mean[i] * mean[i], 0.0f);
        factor[i] = p_.prologue.columns[2 * p_.columns] / sqrtf(variance + p_.prologue.epsilon);
      }
#pragma unroll
      for (int n = 0; n < kCount; n++)
#pragma unroll
        for (int k = 0; k < 2; k++) {
          const int at = column + n * 8 + first_ + k;
          const float2 own = at < p_.columns ? reinterpret_cast<const float2*>(p_.prologue.columns)[at] : make_float2(0, 0);
#pragma unroll
          for (int i = 0; i < 2; i++)
            sums[n][i * 2 + k] = fmaf(sums[n][i * 2 + k] - mean[i] * own.x, factor[i], own.y);
        }
    }
  }

 private:
  static __device__ __forceinline__ float of_four(float own) {
    own += __shfl_xor_sync(0xffffffffu, own, 1);
    return own + __shfl_xor_sync(0xffffffffu, own, 2);
  }

  const TileProblem& p_;
  const int first_;       // of a step's channels, this thread's
  Pair least_, largest_;  // rounded as what they cut off is
  const T* gates_[2] = {};
};

}  // namespace tiles
}  // namespace gopt_runtime
