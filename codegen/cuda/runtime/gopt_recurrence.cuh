// RNN, GRU and LSTM, all steps in one launch. A cluster of blocks has a direction and some sequences of the batch; each
// block has some hidden units with all of their gates, and keeps the weights of these in registers and in its shared
// memory, where they fit. What a block makes of a step it writes into the shared memory of all blocks of the cluster,
// and a barrier of the cluster stands between two steps (Diamos et al., Persistent RNNs, ICML'16, section 3, by
// registers and a barrier of the device). Without clusters a block has all units.
#pragma once

#include <cstdint>

#include "gopt_cluster.cuh"
#include "gopt_launch.h"

namespace gopt_runtime {
namespace recurrences {

constexpr int kThreads = 512;

enum class Cell { Tanh, Relu, Gru, Lstm };
template <Cell cell>
constexpr int kGates = cell == Cell::Lstm  ? 4
                       : cell == Cell::Gru ? 3
                                           : 1;

// Tensors are dense; null where the operator has none, or nobody reads what it gives.
struct Call {
  const float* sums;        // [steps, batch, directions, gates, hidden]: the input's part, with all biases but `bias`
  const float* weights;     // [directions, hidden, gates, hidden]
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

// Eight lanes of a warp have a column, which is a unit's gate, and each of them every eighth four of the depth; the
// four columns of a warp are a unit's gates, or, where there is one alone, four units. A block's warps take as many
// units at once, those that are left in further turns.
constexpr int kSlices = 8, kWarps = kThreads / 32;
template <int gates>
constexpr int kUnitsAtOnce = gates == 1 ? 4 * kWarps : kWarps;

struct Division {
  int units, turns;    // of a block
  int fours;           // of the depth, of a lane
  bool keeps_weights;  // in shared memory, but for those that are in registers
};

__host__ __device__ constexpr int lesser(int a, int b) { return a < b ? a : b; }

__device__ __forceinline__ float logistic(float x) { return 1.0f / (1.0f + expf(-x)); }

// Four of the depth of a column, from number 4 x four on; zeros beyond what there is.
template <int gates>
__device__ __forceinline__ float4 weights_at(const Call& call, int direction, int four, int gate, int unit) {
  const int hidden = call.hidden, left = hidden - 4 * four;
  if (gate >= gates || unit >= hidden || left <= 0) return float4{0, 0, 0, 0};
  const int64_t next = static_cast<int64_t>(gates) * hidden;
  const float* own = call.weights + (static_cast<int64_t>(direction) * hidden + 4 * four) * next + gate * hidden + unit;
  return float4{own[0], left > 1 ? own[next] : 0, left > 2 ? own[2 * next] : 0, left > 3 ? own[3 * next] : 0};
}

// Until all blocks are here, in two halves: what is written to memory between them is not waited for.
__device__ __forceinline__ void arrive() {
#if __CUDA_ARCH__ >= 900
  if (gridDim.y > 1) tiles::arrive_at_cluster();
#endif
}
__device__ __forceinline__ void leave() {
#if __CUDA_ARCH__ >= 900
  if (gridDim.y > 1) return tiles::leave_cluster();
#endif
  __syncthreads();
}

// The input's part of a unit's gates, and what is added to the states' part.
template <int gates>
struct Given {
  float x[gates], bias[gates];
};

// A unit of a sequence, as it goes from step to step.
template <Cell cell>
__device__ __forceinline__ float next_state(const float (&x)[kGates<cell>], const float (&s)[kGates<cell>],
                                            const float* peepholes, int hidden, float before, float& cell_state) {
  if constexpr (cell == Cell::Lstm) {
    float i = x[0] + s[0], o = x[1] + s[1], f = x[2] + s[2];
    if (peepholes) i += peepholes[0] * cell_state, f += peepholes[2 * hidden] * cell_state;
    cell_state = logistic(f) * cell_state + logistic(i) * tanhf(x[3] + s[3]);
    if (peepholes) o += peepholes[hidden] * cell_state;
    return logistic(o) * tanhf(cell_state);
  } else if constexpr (cell == Cell::Gru) {
    const float kept = logistic(x[0] + s[0]);
    return (1.0f - kept) * tanhf(x[2] + logistic(x[1] + s[1]) * s[2]) + kept * before;
  } else {
    const float sum = x[0] + s[0];
    return cell == Cell::Relu ? (sum < 0.0f ? 0.0f : sum) : tanhf(sum);
  }
}

// Cell states of a block, in floats; a whole number of fours.
template <Cell cell, int rows>
__host__ __device__ constexpr int cells_of(int turns) {
  return cell == Cell::Lstm ? turns * rows * kUnitsAtOnce<4> : 0;
}

// `held`: fours of a lane's first column that are in registers.
template <Cell cell, int rows, int held>
__global__ void __launch_bounds__(kThreads) take_all_steps(const Call call, const Division by) {
  static_assert(rows <= kSlices, "a lane finishes one sequence");
  extern __shared__ __align__(128) char shared[];
  float4* const room = reinterpret_cast<float4*>(shared);
  constexpr int gates = kGates<cell>, units_at_once = kUnitsAtOnce<gates>;
  const int thread = static_cast<int>(threadIdx.x), hidden = call.hidden, slice = thread % kSlices,
            slot = thread % 32 / kSlices, gate = gates == 1 ? 0 : slot,
            first_unit = static_cast<int>(blockIdx.y) * by.units + (gates == 1 ? thread / kSlices : thread / 32),
            last_unit = lesser(static_cast<int>(blockIdx.y + 1) * by.units, hidden);
  const int direction = static_cast<int>(blockIdx.x) % call.directions,
            row = static_cast<int>(blockIdx.x) / call.directions * rows + slice;
  // Whether the lane has a sequence, whose units it finishes.
  const bool has_row = slice < rows && row < call.batch && (gates == 1 || slot == 0);
  const bool is_backwards = call.is_reversed || direction == 1;
  const int in_registers = lesser(by.fours, held), kept_fours = by.turns * by.fours - in_registers,
            depth = 4 * kSlices * (by.fours + held - in_registers);
  float4* const kept = room + thread;  // one of each thread, then the next of each
  float* const cells = reinterpret_cast<float*>(room + (by.keeps_weights ? kept_fours * kThreads : 0));
  float* const states = cells + cells_of<cell, rows>(by.turns);  // of two steps in turn
  const auto cell_at = [&](int turn) { return (turn * rows + slice) * units_at_once + thread / 32; };  // of an LSTM
  // The number of a four that is not in registers, among those.
  const auto kept_at = [&](int turn, int j) { return (turn * by.fours + j - in_registers) * kThreads; };
  const auto weight = [&](int turn, int j) {
    return weights_at<gates>(call, direction, j * kSlices + slice, gate, first_unit + turn * units_at_once);
  };
  const auto state_of = [&](int unit) { return (static_cast<int64_t>(direction) * call.batch + row) * hidden + unit; };

  gopt_let_next_begin();
  if (!call.has_fixed_weights) gopt_wait();
  float4 own[held];
#pragma unroll
  for (int j = 0; j < held; j++) own[j] = weight(0, j);
  if (by.keeps_weights)
    for (int turn = 0; turn < by.turns; turn++)
      for (int j = turn == 0 ? held : 0; j < by.fours; j++) kept[kept_at(turn, j)] = weight(turn, j);
  gopt_wait();
  for (int i = thread; i < 2 * rows * depth; i += kThreads) {
    const int unit = i % depth, of = static_cast<int>(blockIdx.x) / call.directions * rows + i / depth;
    const bool is_there = i < rows * depth && unit < hidden && of < call.batch;
    states[i] = is_there ? call.state[(static_cast<int64_t>(direction) * call.batch + of) * hidden + unit] : 0;
  }
  if (cell == Cell::Lstm)
    for (int turn = 0; turn < by.turns; turn++)
      if (const int unit = first_unit + turn * units_at_once; has_row && unit < last_unit)
        cells[cell_at(turn)] = call.cell_state[state_of(unit)];
  arrive();

  const auto add = [&](float(&sums)[rows], const float4& w, const float* now, int four) {
#pragma unroll
    for (int r = 0; r < rows; r++) {
      const float4 h = reinterpret_cast<const float4*>(now + r * depth)[four];
      sums[r] += h.x * w.x + h.y * w.y + h.z * w.z + h.w * w.w;
    }
  };
  const auto step_of = [&](int k) { return is_backwards ? call.steps - 1 - k : k; };
  const auto given_to = [&](int step, int unit, bool is_there) {
    Given<gates> given;
    const int64_t line = (static_cast<int64_t>(step) * call.batch + row) * call.directions + direction;
#pragma unroll
    for (int g = 0; g < gates; g++) {
      given.x[g] = is_there ? call.sums[(line * gates + g) * hidden + unit] : 0;
      given.bias[g] = is_there && call.bias ? call.bias[(direction * gates + g) * hidden + unit] : 0;
    }
    return given;
  };
  leave();
  for (int k = 0; k < call.steps; k++) {
    const int step = step_of(k);
    const float* const now = states + k % 2 * rows * depth;
    float* const next = states + (k + 1) % 2 * rows * depth;
    float* to = nullptr;  // where a result is to be stored
    float result = 0;
    for (int turn = 0; turn < by.turns; turn++) {
      const int unit = first_unit + turn * units_at_once;
      const bool is_own = has_row && unit < last_unit;
      const Given<gates> own_given = given_to(step, unit, is_own);  // on its way while states are multiplied
      if (to) *to = result;
      to = nullptr;
      float sums[rows] = {};
      int j = 0;
      if (turn == 0) {
#pragma unroll
        for (; j < held; j++) add(sums, own[j], now, j * kSlices + slice);
      }
#pragma unroll 4
      for (; j < by.fours; j++)
        add(sums, by.keeps_weights ? kept[kept_at(turn, j)] : weight(turn, j), now, j * kSlices + slice);
      float mine = 0;  // of the lane's sequence
#pragma unroll
      for (int r = 0; r < rows; r++) {
#pragma unroll
        for (int other = 1; other < kSlices; other *= 2) sums[r] += __shfl_xor_sync(~0u, sums[r], other);
        if (slice == r) mine = sums[r];
      }
      float s[gates];
#pragma unroll
      for (int g = 0; g < gates; g++) {
        s[g] = (gates == 1 ? mine : __shfl_sync(~0u, mine, g * kSlices + slice)) + own_given.bias[g];
      }
      float made = 0;
      if (is_own) {
        const float before = now[slice * depth + unit];
        const float* const peepholes =
            cell == Cell::Lstm && call.peepholes ? call.peepholes + direction * 3 * hidden + unit : nullptr;
        float cell_state = cell == Cell::Lstm ? cells[cell_at(turn)] : 0;
        made = next_state<cell>(own_given.x, s, peepholes, hidden, before, cell_state);
        const bool is_running = !call.lengths || step < call.lengths[row];
        if (call.result)
          to = call.result + static_cast<int64_t>(step) * call.directions * call.batch * hidden + state_of(unit);
        result = is_running ? made : 0;
        if (!is_running) made = before;
        if (cell == Cell::Lstm && is_running) cells[cell_at(turn)] = cell_state;
      }
#if __CUDA_ARCH__ >= 900
      // A lane for each block.
      if (gridDim.y > 1) {
        const int lane = thread % 32;
#pragma unroll
        for (int q = 0; q < (gates == 1 ? 4 : 1); q++)
#pragma unroll
          for (int r = 0; r < rows; r++) {
            const float value = __shfl_sync(~0u, made, q * kSlices + r);
            const int there = unit + (gates == 1 ? q - slot : 0);
            if (lane < static_cast<int>(gridDim.y) && there < last_unit)
              *const_cast<float*>(tiles::in_block(next + r * depth + there, lane)) = value;
          }
        continue;
      }
#endif
      if (is_own) next[slice * depth + unit] = made;
    }
    arrive();
    if (to) *to = result;
    leave();
  }
  if (!has_row) return;
  for (int turn = 0; turn < by.turns; turn++)
    if (const int unit = first_unit + turn * units_at_once; unit < last_unit) {
      if (call.last) call.last[state_of(unit)] = states[call.steps % 2 * rows * depth + slice * depth + unit];
      if (cell == Cell::Lstm && call.last_cell) call.last_cell[state_of(unit)] = cells[cell_at(turn)];
    }
}

inline Division divide(int hidden, int units_at_once, int blocks) {
  Division by{};
  by.units = (hidden + blocks - 1) / blocks;
  by.turns = (by.units + units_at_once - 1) / units_at_once;
  by.fours = (hidden + 4 * kSlices - 1) / (4 * kSlices);
  by.keeps_weights = true;
  return by;
}

// Of a block's shared memory.
template <Cell cell, int rows, int held>
int64_t room_bytes(const Division& by) {
  const int64_t in_registers = lesser(by.fours, held), all = static_cast<int64_t>(by.turns) * by.fours,
                kept = by.keeps_weights ? all - in_registers : 0;
  return 4 * (4 * kept * kThreads + cells_of<cell, rows>(by.turns) +
              2 * rows * 4 * kSlices * (by.fours + held - in_registers));
}

}  // namespace recurrences
}  // namespace gopt_runtime
