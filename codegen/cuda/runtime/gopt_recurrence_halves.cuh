// What a warp computes in a step of a recurrence of several sequences on the tensor cores: weights and states are
// rounded to halves, sums are floats.
#pragma once

#include "gopt_fragments.cuh"
#include "gopt_recurrence_step.cuh"

namespace gopt_runtime {
namespace recurrences {

// Two as a word. Beyond their range it is the largest, since an infinity times nothing is no number: of a half whose
// exponent is all ones, 1 is taken. No number, of which all bits are ones, stays none.
__device__ __forceinline__ unsigned halves_of(float low, float high) {
  const unsigned word = tiles::Half::pair(low, high);
  return word - (((word & 0x7fff7fffu) + 0x04000400u) >> 15 & 0x00010001u);
}

// Eight sequences, which are the first rows of a product of tiles, of sixteen; its columns are the warp's. (The other
// way round registers of weights would not lie as a tile's have to.) States of two units are a word; those of all
// sequences lie together.
template <Cell cell>
struct InHalves {
  static constexpr int rows = 8, gates = kGates<cell>;
  static constexpr int kTiles = 8;   // of a four of the depth of all lanes, 128 units
  static constexpr int kPieces = 4;  // two tiles each
  static constexpr int kChains = 4;  // sums that do not wait for each other
  static constexpr int kMostHeld = 8;
  static constexpr bool kIsOfTiles = true;
  static constexpr int kUnitsOfWord = 2;
  static constexpr bool kKeepsOwnStates = true;
  using Piece = uint4;
  struct Weights {
    Piece pieces[kPieces];
  };
  struct Sums {
    float of_tiles[kChains][4] = {};
  };

  static __host__ __device__ constexpr int place(int unit, int row) { return unit / kUnitsOfWord * rows + row; }
  static __host__ __device__ constexpr int64_t count_of_states(int64_t depth) { return depth / kUnitsOfWord * rows; }
  static __device__ __forceinline__ void put(float* states, int unit, int row, float state) {
    reinterpret_cast<__half*>(states + place(unit, row))[unit % kUnitsOfWord] =
        __float2half_rn(gopt_within_half(state));
  }
  static __device__ __forceinline__ void put_four(float* states, const float* before, bool has_ended, int unit, int row,
                                                  const float4& four) {
    const int first = place(unit, row), second = first + rows;
    states[first] = has_ended ? before[first] : __uint_as_float(halves_of(four.x, four.y));
    states[second] = has_ended ? before[second] : __uint_as_float(halves_of(four.z, four.w));
  }
  // Of the lane's unit and the one beside it, which the lanes beside it have.
  static __device__ __forceinline__ float word(float made) {
    constexpr int lanes_of_unit = kLanes / kUnitsOfWarp<gates>;
    const bool is_second = (threadIdx.x & lanes_of_unit) != 0;
    const float other = __shfl_xor_sync(~0u, made, lanes_of_unit);
    return __uint_as_float(is_second ? halves_of(other, made) : halves_of(made, other));
  }

  static __device__ __forceinline__ void load(const Call& call, int direction, int four, int unit, Weights& to) {
    const int lane = static_cast<int>(threadIdx.x) % kLanes, column = lane / kLanesOfColumn, q = lane % kLanesOfColumn,
              hidden = call.hidden, own_unit = gates == 1 ? unit + column : unit + column / 4,
              gate = gates == 1 ? 0 : column % 4;
    const bool is_there = gate < gates && own_unit < hidden;
    const float* const from =
        call.weights + (static_cast<int64_t>(direction * gates + (is_there ? gate : 0)) * hidden + own_unit) * hidden;
    unsigned* const words = reinterpret_cast<unsigned*>(to.pieces);
#pragma unroll
    for (int i = 0; i < 2 * kTiles; i++) {
      const int first = 4 * kLanes * four + 8 * i + 2 * q;
      const auto at = [&](int k) { return is_there && k < hidden ? from[k] : 0.0f; };
      words[i] = halves_of(at(first), at(first + 1));
    }
  }
  static __device__ __forceinline__ void add(Sums& sums, const Weights& weights, const float* states, int four,
                                             int lane) {
    const float* const from =
        states + place(4 * kLanes * four, 0) + lane % kLanesOfColumn * rows + lane / kLanesOfColumn;
    const unsigned* const words = reinterpret_cast<const unsigned*>(weights.pieces);
#pragma unroll
    for (int tile = 0; tile < kTiles; tile++) {
      const auto states_at = [&](int unit) { return __float_as_uint(from[place(16 * tile + unit, 0)]); };
      const unsigned a[4] = {states_at(0), 0, states_at(8), 0}, b[2] = {words[2 * tile], words[2 * tile + 1]};
      tiles::Half::mma(sums.of_tiles[tile % kChains], a, b);
    }
  }
  // A lane has sums of sequence lane / 4 and two columns, and gets those of its column, as sum_over_lanes() gives them.
  static __device__ __forceinline__ void finish(Sums& sums, int lane, float (&own)[kRowsOfLane<rows>]) {
    float of_columns[2];
#pragma unroll
    for (int i = 0; i < 2; i++)
      of_columns[i] = (sums.of_tiles[0][i] + sums.of_tiles[1][i]) + (sums.of_tiles[2][i] + sums.of_tiles[3][i]);
    const int column = lane / kLanesOfColumn, row = lane % kLanesOfColumn * kRowsOfLane<rows>;
#pragma unroll
    for (int i = 0; i < kRowsOfLane<rows>; i++) {
      const int from = (row + i) * 4 + column / 2;
      const float first = __shfl_sync(~0u, of_columns[0], from), second = __shfl_sync(~0u, of_columns[1], from);
      own[i] = column % 2 == 0 ? first : second;
    }
  }
};

}  // namespace recurrences
}  // namespace gopt_runtime
