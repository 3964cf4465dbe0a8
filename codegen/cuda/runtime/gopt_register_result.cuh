// What is done with the sums of a tile that no other block has a part of: in the registers in which they are.
#pragma once

#include "gopt_activation.cuh"
#include "gopt_fragments.cuh"
#include "gopt_tile_problem.h"

namespace gopt_runtime {
namespace tiles {

// A warp has 16 rows; of each eight columns a lane has two neighbours of one row, and of another row eight below.
// Neighbouring lanes exchange theirs, so that a lane stores and reads 16 bytes at once.
template <class S, class Out, bool kHasRegisters = true>
class RegisterResult {
 public:
  static constexpr int kCount = S::kColumns / 8;

  // Of a warp's rows from `first_row` on; those from `end` on are not in the result.
  __device__ __forceinline__ RegisterResult(const TileProblem& p, int first_row, int end, int first_column)
      : p_(p), row_(first_row + lane() / 4), end_(end), first_column_(first_column) {}

  // A lane has the bias of two of each 64 columns, which the others ask it for.
  __device__ __forceinline__ void fetch_bias() {
    const int column = first_column_ + lane() * 2;
#pragma unroll
    for (int part = 0; part < kBiases; part++) {
      const bool is_there = p_.bias && column + part * 64 < p_.columns;
      bias_[part] = is_there ? load<Pair>(static_cast<const Out*>(p_.bias) + column + part * 64) : Pair{};
    }
  }
  // Where registers are left beside the sums.
  __device__ __forceinline__ void fetch_addends() {
    if (kFetches && p_.addend)
      for_each_chunk([this](int half, int n, const Out* addend, Out*, bool is_there) {
        addends_[half][kFetches ? n / kPairs : 0] = is_there ? load<Chunk>(addend) : Chunk{};
      });
  }

  __device__ __forceinline__ void finish(float (*sums)[4]) const {
#pragma unroll
    for (int n = 0; n < kCount; n++) {
      const float2 bias = numbers_of(from_lane(bias_[n / 8], n % 8 * 4 + lane() % 4));
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float* own = sums[n] + half * 2;
        own[0] = own[0] * p_.scale + bias.x, own[1] = own[1] * p_.scale + bias.y;
      }
    }
    if (p_.addend)
      for_each_chunk([&](int half, int n, const Out* addend, Out*, bool is_there) {
        Chunk chunk = kFetches ? addends_[half][kFetches ? n / kPairs : 0] : is_there ? load<Chunk>(addend) : Chunk{};
        exchange(chunk);
#pragma unroll
        for (int k = 0; k < kPairs; k++) {
          const float2 own = numbers_of(chunk.pairs[k]);
          sums[n + k][half * 2] += own.x, sums[n + k][half * 2 + 1] += own.y;
        }
      });
    apply_activation<Out, kCount>(sums, p_.activation);
    for_each_chunk([&](int half, int n, const Out*, Out* to, bool is_there) {
      Chunk chunk;
#pragma unroll
      for (int k = 0; k < kPairs; k++) chunk.pairs[k] = pair_of(sums[n + k] + half * 2);
      exchange(chunk);
      if (is_there) *reinterpret_cast<Chunk*>(to) = chunk;
    });
  }

 private:
  static constexpr int kWords = sizeof(Out) / 2, kPairs = kChunk / (2 * static_cast<int>(sizeof(Out)));
  // Two neighbours, and 16 bytes of them, as they lie.
  struct alignas(2 * sizeof(Out)) Pair {
    unsigned words[kWords];
  };
  struct alignas(kChunk) Chunk {
    Pair pairs[kPairs];
  };

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  template <class T>
  static __device__ __forceinline__ T load(const Out* from) {
    return *reinterpret_cast<const T*>(from);
  }
  static __device__ __forceinline__ float2 numbers_of(const Pair& pair) {
    Out two[2];
    memcpy(two, &pair, sizeof two);
    return make_float2((float)two[0], (float)two[1]);
  }
  static __device__ __forceinline__ Pair pair_of(const float* numbers) {
    const Out two[2] = {Out(numbers[0]), Out(numbers[1])};
    Pair pair;
    memcpy(&pair, two, sizeof pair);
    return pair;
  }
  static __device__ __forceinline__ Pair from_lane(Pair pair, int source) {
#pragma unroll
    for (unsigned& word : pair.words) word = __shfl_sync(0xffffffffu, word, source);
    return pair;
  }

  // Of as many neighbouring lanes as a chunk has pairs: what was pair `l` of lane `k` is pair `k` of lane `l`.
  static __device__ __forceinline__ void exchange(Chunk& chunk) {
#pragma unroll
    for (int step = 1; step < kPairs; step *= 2)
#pragma unroll
      for (int k = 0; k < kPairs; k++)
        if ((k & step) == 0) exchange(chunk.pairs[k], chunk.pairs[k + step], step);
  }
  static __device__ __forceinline__ void exchange(Pair& low, Pair& high, int step) {
    const bool is_high = (lane() & step) != 0;
    const Pair found = from_lane(is_high ? low : high, lane() ^ step);
    (is_high ? low : high) = found;
  }

  // Of each row that a lane has, the chunks that it has after an exchange: of `kPairs` times eight columns from 8 n on
  // one; with places in what is added and in the result, and whether they are in it.
  template <class Do>
  __device__ __forceinline__ void for_each_chunk(const Do& run) const {
    const int own = lane() % kPairs, column = first_column_ + own * 8 + (lane() % 4 - own) * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = row_ + half * 8;
      const Out* addend = static_cast<const Out*>(p_.addend) + row * p_.addend_line + column;
      Out* to = static_cast<Out*>(p_.dst) + row * p_.dst_line + column;
#pragma unroll
      for (int n = 0; n < kCount; n += kPairs)
        run(half, n, addend + n * 8, to + n * 8, row < end_ && column + n * 8 < p_.columns);
    }
  }

  static constexpr int kBiases = (kCount + 7) / 8;
  static constexpr bool kFetches = kHasRegisters && kCount <= 8;
  const TileProblem& p_;
  int row_, end_, first_column_;
  Pair bias_[kBiases];
  Chunk addends_[2][kFetches ? kCount / kPairs : 1];
};

}  // namespace tiles
}  // namespace gopt_runtime
