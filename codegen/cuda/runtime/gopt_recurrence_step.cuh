// What a warp computes in a step of a recurrence: products of states by weights, their sums over its lanes, and what
// becomes of a unit by its gates. How a block's warps, and blocks, go from step to step: gopt_recurrence.cuh.
#pragma once

#include <cstdint>

#include "gopt_math.cuh"

namespace gopt_runtime {
namespace recurrences {

constexpr int kThreads = 256;  // which have 255 registers each

enum class Cell { Tanh, Relu, Gru, Lstm };
template <Cell cell>
constexpr int kGates = cell == Cell::Lstm  ? 4
                       : cell == Cell::Gru ? 3
                                           : 1;

// Tensors are dense; null where the operator has none, or nobody reads what it gives.
struct Call {
  const float* sums;        // [steps, batch, directions, gates, hidden]: the input's part, with all biases but `bias`
  const float* weights;     // [directions, gates, hidden, hidden]
  const float* state;       // [directions, batch, hidden]
  const float* cell_state;  // likewise
  const float* bias;        // [directions, gates, hidden], added before a GRU's reset gate
  const float* peepholes;   // [directions, 3, hidden], of gates i, o and f
  const int64_t* lengths;   // [batch]
  float *result, *last, *last_cell;  // [steps, directions, batch, hidden]; as the states
  int steps, batch, directions, hidden;
  bool is_reversed;        // the first direction; a second one always is
  bool has_fixed_weights;  // they are there before the kernel before has ended
};

// A warp has eight columns: the gates of two units, of which a GRU lacks the fourth, or the one gate of eight. Each
// lane has every 32nd four of their depth. A block's warps take as many units at once, those that are left in further
// turns.
constexpr int kLanes = 32, kWarps = kThreads / kLanes, kColumns = 8;
template <int gates>
constexpr int kUnitsOfWarp = gates == 1 ? kColumns : kColumns / 4;
template <int gates>
constexpr int kUnitsAtOnce = kWarps* kUnitsOfWarp<gates>;
// Lanes that have a column, once a warp's sums are complete, and sequences of each of these.
constexpr int kLanesOfColumn = kLanes / kColumns;
template <int rows>
constexpr int kRowsOfLane = rows > kLanesOfColumn ? rows / kLanesOfColumn : 1;

__host__ __device__ constexpr int lesser(int a, int b) { return a < b ? a : b; }

// Four of the depth of each of a warp's columns, which are of units from `unit` on, from number 4 x four on; zeros
// beyond what there is.
template <int gates>
__device__ __forceinline__ void load_weights(const Call& call, int direction, int four, int unit,
                                             float4 (&to)[kUnitsOfWarp<gates> * gates]) {
  const int hidden = call.hidden, left = hidden - 4 * four;
  const int64_t next_gate = static_cast<int64_t>(hidden) * hidden;
  const float* const first =
      call.weights + direction * gates * next_gate + static_cast<int64_t>(unit) * hidden + 4 * four;
#pragma unroll
  for (int c = 0; c < kUnitsOfWarp<gates> * gates; c++) {
    const float* const own = first + c % gates * next_gate + c / gates * hidden;
    to[c] = float4{0, 0, 0, 0};
    if (unit + c / gates >= hidden || left <= 0) continue;
    if (hidden % 4 == 0)
      to[c] = *reinterpret_cast<const float4*>(own);
    else
      to[c] = float4{own[0], left > 1 ? own[1] : 0, left > 2 ? own[2] : 0, left > 3 ? own[3] : 0};
  }
}

// States of a step in shared memory, in floats: of four units those of all sequences lie together, so that several are
// stored at once; and 32 such fours take turns by 16 bytes, so that a warp reads what lies together.
template <int rows>
__host__ __device__ constexpr int place_of(int unit, int row) {
  const int four = unit / 4, within = unit % 4 * rows + row;
  return ((four / kLanes * rows + within / 4) * kLanes + four % kLanes) * 4 + within % 4;
}

// Adds what a four of the depth brings to a warp's columns.
template <int gates, int rows>
__device__ __forceinline__ void add_products(float (&sums)[kColumns][rows], const float4* weights,
                                             const float4* states) {
  constexpr int columns = kUnitsOfWarp<gates> * gates, columns_of_unit = gates == 1 ? 1 : 4;
#pragma unroll
  for (int i = 0; i < rows; i++) {
    const float4 four = states[i * kLanes];
    const float of_four[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int c = 0; c < columns; c++) {
      const float weight[4] = {weights[c].x, weights[c].y, weights[c].z, weights[c].w};
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int within = 4 * i + e;
        sums[c / gates * columns_of_unit + c % gates][within % rows] += of_four[e] * weight[within / rows];
      }
    }
  }
}

// Of two numbers of each lane, the sum over the lane and the one so many away of the first, or, in the upper one, of
// the second.
__device__ __forceinline__ float exchange(float low, float high, int lane, int step) {
  const bool is_upper = (lane & step) != 0;
  const float other = __shfl_xor_sync(~0u, is_upper ? low : high, step);
  return (is_upper ? high : low) + other;
}

template <int half, int rows>
__device__ __forceinline__ void halve_columns(float (&sums)[kColumns][rows], int lane) {
#pragma unroll
  for (int i = 0; i < half * rows; i++)
    sums[i / rows][i % rows] =
        exchange(sums[i / rows][i % rows], sums[i / rows + half][i % rows], lane, half * kLanesOfColumn);
}

// Sums of a warp's columns over all lanes: each lane gets those of column `lane / 4`, of sequences from
// `lane % 4 * rows / 4` on. Lanes halve what they have, and then add what others have of the one that is left.
template <int rows>
__device__ __forceinline__ void sum_over_lanes(float (&sums)[kColumns][rows], int lane,
                                               float (&own)[kRowsOfLane<rows>]) {
  halve_columns<4, rows>(sums, lane);
  halve_columns<2, rows>(sums, lane);
  halve_columns<1, rows>(sums, lane);
  float(&left)[rows] = sums[0];
#pragma unroll
  for (int level = 1; level < kLanesOfColumn; level *= 2) {
    const int half = rows / 2 / level, step = kLanesOfColumn / 2 / level;
    if (half == 0) left[0] += __shfl_xor_sync(~0u, left[0], step);
#pragma unroll
    for (int r = 0; r < half; r++) left[r] = exchange(left[r], left[r + half], lane, step);
  }
#pragma unroll
  for (int i = 0; i < kRowsOfLane<rows>; i++) own[i] = left[i];
}

// Products in floats, of `sequences`. Of what a lane has of a warp's weights, a four of the depth is so many pieces of
// 16 bytes.
template <Cell cell, int sequences>
struct InFloats {
  static constexpr int rows = sequences, gates = kGates<cell>, kPieces = kUnitsOfWarp<gates> * gates;
  static constexpr int kMostHeld = rows > 4 ? 2 : 4;  // fours of the depth that a lane has registers for
  static constexpr bool kIsOfTiles = false;
  static constexpr int kUnitsOfWord = 1;          // whose states lie in one word
  static constexpr bool kKeepsOwnStates = false;  // beside these, which are less exact
  using Piece = float4;
  struct Weights {
    Piece pieces[kPieces];
  };
  struct Sums {
    float of_columns[kColumns][rows] = {};
  };

  // States of a step are words; where the first of a unit's is, and how many there are.
  static __host__ __device__ constexpr int place(int unit, int row) { return place_of<rows>(unit, row); }
  static __host__ __device__ constexpr int64_t count_of_states(int64_t depth) { return rows * depth; }
  static __device__ __forceinline__ void put(float* states, int unit, int row, float state) {
    states[place(unit, row)] = state;
  }
  // Four units', of which the first's number is a multiple of four; or, where a sequence has ended, those it had.
  static __device__ __forceinline__ void put_four(float* states, const float* before, bool has_ended, int unit, int row,
                                                  const float4& four) {
    const float own[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int e = 0; e < 4; e++) states[place(unit + e, row)] = has_ended ? before[place(unit + e, row)] : own[e];
  }
  // What a lane has made, as it is sent.
  static __device__ __forceinline__ float word(float made) { return made; }
  static __device__ __forceinline__ void load(const Call& call, int direction, int four, int unit, Weights& to) {
    load_weights<gates>(call, direction, four * kLanes + static_cast<int>(threadIdx.x) % kLanes, unit, to.pieces);
  }
  static __device__ __forceinline__ void add(Sums& sums, const Weights& weights, const float* states, int four,
                                             int lane) {
    add_products<gates, rows>(sums.of_columns, weights.pieces,
                              reinterpret_cast<const float4*>(states) + four * rows * kLanes + lane);
  }
  static __device__ __forceinline__ void finish(Sums& sums, int lane, float (&own)[kRowsOfLane<rows>]) {
    sum_over_lanes<rows>(sums.of_columns, lane, own);
  }
};

// To 2e-7, without a branch: what a step waits for is a chain of these.
__device__ __forceinline__ float logistic_or_tanh(float x, bool is_tanh) {
  constexpr float kOfExp = 1.44269504f;
  const float share = gopt_short_reciprocal(1.0f + gopt_short_exp2((is_tanh ? 2 * kOfExp : -kOfExp) * x));
  return is_tanh ? gopt_short_tanh_of(x, share) : share;
}

// A unit of a sequence, as it goes from step to step; all lanes of a warp together, of which each that has one of the
// unit's gates gets all of it. `x`, `s`: the input's part and the states' of the lane's own gate, of which the first
// lane of a sequence has the former; `lane`: that one; `peepholes`: null for all, or the unit's.
template <Cell cell>
__device__ __forceinline__ float next_state(float x, float s, int lane, int gate, const float* peepholes, bool is_there,
                                            int hidden, float before, float& cell_state) {
  const auto of_gate = [&](float value, int g) { return __shfl_sync(~0u, value, lane + (g - gate) * kLanesOfColumn); };
  if constexpr (cell == Cell::Lstm) {
    float sum = x + s;
    if (peepholes && is_there && gate % 2 == 0) sum += peepholes[gate * hidden] * cell_state;
    const float own = logistic_or_tanh(sum, gate == 3), input = of_gate(own, 0), forget = of_gate(own, 2),
                candidate = of_gate(own, 3);
    float output = of_gate(own, 1);
    cell_state = forget * cell_state + input * candidate;
    if (peepholes) {
      sum = of_gate(sum, 1);
      output = logistic_or_tanh(is_there ? sum + peepholes[hidden] * cell_state : sum, false);
    }
    return output * logistic_or_tanh(cell_state, true);
  } else if constexpr (cell == Cell::Gru) {
    const float own = logistic_or_tanh(x + s, false), kept = of_gate(own, 0), reset = of_gate(own, 1),
                candidate = logistic_or_tanh(of_gate(x, 2) + reset * of_gate(s, 2), true);
    return (1.0f - kept) * candidate + kept * before;
  } else {
    const float sum = of_gate(x, 0) + s;
    return cell == Cell::Relu ? (sum < 0.0f ? 0.0f : sum) : logistic_or_tanh(sum, true);
  }
}

}  // namespace recurrences
}  // namespace gopt_runtime
