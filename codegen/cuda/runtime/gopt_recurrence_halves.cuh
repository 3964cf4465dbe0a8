// What a warp computes in a step of a recurrence of several sequences on the tensor cores: weights and states are
// rounded to halves, sums are floats.
#pragma once

#include "gopt_fragments.cuh"
#include "gopt_recurrence_step.cuh"

namespace gopt_runtime {
namespace recurrences {

// Eight sequences. A product of tiles has sixteen rows, of which a warp's columns of weights are the first eight: so
// each lane gets those sums of them that it goes on with (as sum_over_lanes() gives them), over the whole depth. Which
// element of the depth is where within a tile is free, as long as it is the same for weights and states: here lane q of
// the four of a column or a sequence has units q, 4 + q, 8 + q and 12 + q of sixteen.
template <Cell cell>
struct InHalves {
  static constexpr int rows = 8, gates = kGates<cell>;
  static constexpr int kTiles = 8;   // of a four of the depth of all lanes, 128 units
  static constexpr int kPieces = 4;  // two tiles each
  static constexpr int kMostHeld = 8;
  static constexpr bool kHasRowsTogether = true, kIsOfTiles = true;
  using Piece = uint4;
  struct Weights {
    Piece pieces[kPieces];
  };
  struct Sums {
    float of_tiles[2][4] = {};  // every other tile's
  };

  // A gap after each four units, so that neither what lanes read, units beside each other, nor what they store, the
  // fours of a unit's row, is in the same bank.
  static __host__ __device__ constexpr int place(int unit, int row) { return (unit + unit / 4) * rows + row; }
  static __host__ __device__ constexpr int64_t count_of_states(int64_t depth) { return (depth + depth / 4) * rows; }

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
      const int first = 4 * kLanes * four + 8 * i + q;
      const auto at = [&](int k) { return is_there && k < hidden ? from[k] : 0.0f; };
      words[i] = pair(at(first), at(first + 4));
    }
  }
  static __device__ __forceinline__ void add(Sums& sums, const Weights& weights, const float* states, int four,
                                             int lane) {
    const float* const from =
        states + place(4 * kLanes * four, 0) + lane % kLanesOfColumn * rows + lane / kLanesOfColumn;
    const unsigned* const words = reinterpret_cast<const unsigned*>(weights.pieces);
#pragma unroll
    for (int tile = 0; tile < kTiles; tile++) {
      const auto at = [&](int unit) { return from[place(16 * tile + unit, 0)]; };
      const unsigned a[4] = {words[2 * tile], 0, words[2 * tile + 1], 0}, b[2] = {pair(at(0), at(4)), pair(at(8), at(12))};
      tiles::Half::mma(sums.of_tiles[tile % 2], a, b);
    }
  }
  static __device__ __forceinline__ void finish(Sums& sums, int, float (&own)[kRowsOfLane<rows>]) {
#pragma unroll
    for (int i = 0; i < kRowsOfLane<rows>; i++) own[i] = sums.of_tiles[0][i] + sums.of_tiles[1][i];
  }

 private:
  static __device__ __forceinline__ unsigned pair(float low, float high) { return tiles::Half::pair(low, high); }
};

}  // namespace recurrences
}  // namespace gopt_runtime
