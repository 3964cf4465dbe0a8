// RNN, GRU and LSTM, all steps in one launch. A cluster of blocks has a direction and some sequences of the batch; each
// block has some hidden units with all of their gates, and keeps the weights of these in registers and in its shared
// memory, where they fit (Diamos et al., Persistent RNNs, ICML'16, section 3, by registers and a barrier of the
// device). What a block makes of a step it stores into the shared memory of all blocks of the cluster, where it counts
// at a barrier: a step begins when all states have come, and no block waits for anything else. Where a cluster has no
// room for the weights, blocks of the whole device have a part each, and read states where all results are written:
// what is there is no longer what stood there before. A block alone has all units.
#pragma once

#include <cstdint>

#include "gopt_arrivals.cuh"
#include "gopt_cluster.cuh"
#include "gopt_launch.h"
#include "gopt_recurrence_division.cuh"

namespace gopt_runtime {
namespace recurrences {

// What results are filled with where blocks meet in them: a NaN that no instruction makes.
constexpr unsigned kUnwritten = 0xffffffff;
__device__ __forceinline__ bool is_written(const float4& four) {
  return __float_as_uint(four.x) != kUnwritten && __float_as_uint(four.y) != kUnwritten &&
         __float_as_uint(four.z) != kUnwritten && __float_as_uint(four.w) != kUnwritten;
}

#if __CUDA_ARCH__ >= 900
// Stores what a warp has made into all blocks of the cluster, two to the power of `log_blocks`: of the units from
// `unit` on, which as many lanes each have made, a word of as many as one has, the sequences, as many as four at once.
// `next`, `barrier`: in this block.
template <int units_of_warp, class Products, int rows = Products::rows>
__device__ __forceinline__ void send_to_all(const float (&made)[kRowsOfLane<rows>], int lane, int log_blocks,
                                            const float* next, const uint64_t* barrier, int unit, int last_unit) {
  constexpr int units = units_of_warp / Products::kUnitsOfWord, together = lesser(rows, 4),
                lanes_of_unit = kLanes / units;
  float words[kRowsOfLane<rows>];
#pragma unroll
  for (int i = 0; i < kRowsOfLane<rows>; i++) words[i] = Products::word(made[i]);
  const int own_unit = unit + lane / lanes_of_unit * Products::kUnitsOfWord, pieces = rows / together << log_blocks;
#pragma unroll 1
  for (int first = 0; first < pieces; first += lanes_of_unit) {
    const int piece = first + lane % lanes_of_unit, block = piece & ((1 << log_blocks) - 1),
              first_row = rows > together ? (piece >> log_blocks) * together : 0;
    float own[together];
#pragma unroll
    for (int i = 0; i < together; i++) {
      own[i] = words[0];  // of one sequence, which all lanes have
      if (rows == 1) continue;
      const int from = (lane / lanes_of_unit * lanes_of_unit + (first_row + i) * kLanesOfColumn / rows) % kLanes;
      own[i] = __shfl_sync(~0u, rows <= kLanesOfColumn || i % 2 == 0 ? words[0] : words[kRowsOfLane<rows> - 1], from);
    }
    if (piece >= pieces || own_unit >= last_unit) continue;
    const unsigned to = tiles::address_in(block, next) + 4 * Products::place(own_unit, first_row),
                   at = tiles::address_in(block, barrier);
    if constexpr (together == 4)
      tiles::send(to, float4{own[0], own[1], own[2], own[3]}, at);
    else if constexpr (together == 2)
      tiles::send(to, own[0], own[1], at);
    else
      tiles::send(to, own[0], at);
  }
}
#endif

// `held`: fours of a lane's first columns that are in registers.
template <Cell cell, class Products, int held, bool is_one_turn>
__global__ void __launch_bounds__(kThreads) take_all_steps(const Call call, const Division by) {
  extern __shared__ __align__(128) char shared[];
  float4* const room = reinterpret_cast<float4*>(shared + kBarrierBytes);
  using Weights = typename Products::Weights;
  constexpr int gates = kGates<cell>, units_of_warp = kUnitsOfWarp<gates>, units_at_once = kUnitsAtOnce<gates>,
                rows = Products::rows, pieces = Products::kPieces, rows_of_lane = kRowsOfLane<rows>;
  const int turns = is_one_turn ? 1 : by.turns;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, hidden = call.hidden,
            gate = gates == 1 ? 0 : lane / kLanesOfColumn % 4,
            first_of_warp = static_cast<int>(blockIdx.y) * by.units + thread / kLanes * units_of_warp,
            first_unit = first_of_warp + lane / (kLanes / units_of_warp),
            last_unit = lesser(static_cast<int>(blockIdx.y + 1) * by.units, hidden);
  const int direction = static_cast<int>(blockIdx.x) % call.directions,
            first_row = static_cast<int>(blockIdx.x) / call.directions * rows,
            row_of_lane = lane % kLanesOfColumn * rows / kLanesOfColumn, row = first_row + row_of_lane;
  // Of the lanes that have a sequence's gate, or all of them, the first.
  constexpr int lanes_of_row = rows < kLanesOfColumn ? kLanesOfColumn / rows : 1;
  const int lane_of_row = lane / lanes_of_row * lanes_of_row;
  const bool has_gate = lane == lane_of_row && gate < gates, has_unit = has_gate && gate == 0;
  const bool is_backwards = call.is_reversed || direction == 1;
  const int in_registers = lesser(by.fours, held), depth = 4 * kLanes * (by.fours + held - in_registers),
            states_size = static_cast<int>(Products::count_of_states(depth));
  auto* const kept =
      reinterpret_cast<typename Products::Piece*>(room) + thread;  // one of each thread, then the next of each
  float* const cells = reinterpret_cast<float*>(room + by.kept * pieces * kThreads) + thread;  // likewise
  float* const own_states = cells + cells_of<cell, rows>(turns);                               // likewise
  float* const inputs = own_states + own_states_of<Products>(turns);                           // likewise
  float* const states = inputs - thread + inputs_of<rows>(by);                                 // of two steps in turn
  const auto cell_of = [&](int turn, int i) -> float& { return cells[(turn * rows_of_lane + i) * kThreads]; };
  // Of the states `now`.
  const auto own_state_of = [&](const float* now, int turn, int i) {
    if constexpr (Products::kKeepsOwnStates)
      return own_states[(turn * rows_of_lane + i) * kThreads];
    else
      return now[Products::place(first_unit + turn * units_at_once, row_of_lane + i)];
  };
  const auto input_of = [&](int k, int turn, int i) -> float& {
    return inputs[((k % (kAhead + 1) * turns + turn) * rows_of_lane + i) * kThreads];
  };
  // The number of a four among those that are not in registers.
  const auto number_of = [&](int turn, int j) { return turn * by.fours + j - in_registers; };
  const auto load = [&](int turn, int j, Weights& weights) {
    Products::load(call, direction, j, first_of_warp + turn * units_at_once, weights);
  };
  const auto state_of = [&](int unit, int i) {
    return (static_cast<int64_t>(direction) * call.batch + row + i) * hidden + unit;
  };

  gopt_let_next_begin();
  if (!call.has_fixed_weights) gopt_wait();
  Weights own[held];
#pragma unroll
  for (int j = 0; j < held; j++) load(0, j, own[j]);
  for (int number = 0; number < by.kept; number++) {
    Weights weights;
    load((number + in_registers) / by.fours, (number + in_registers) % by.fours, weights);
#pragma unroll
    for (int p = 0; p < pieces; p++) kept[(number * pieces + p) * kThreads] = weights.pieces[p];
  }
  gopt_wait();
  for (int i = thread; i < 2 * rows * depth; i += kThreads) {
    const int unit = i % depth, among = i / depth % rows, of = first_row + among, step = i / depth / rows;
    const bool is_there = step == 0 && unit < hidden && of < call.batch;
    Products::put(states + step * states_size, unit, among,
                  is_there ? call.state[(static_cast<int64_t>(direction) * call.batch + of) * hidden + unit] : 0);
  }
  for (int turn = 0; turn < turns; turn++)
    for (int i = 0; i < rows_of_lane; i++) {
      const int unit = first_unit + turn * units_at_once;
      const bool is_there = row + i < call.batch && unit < last_unit;
      if (cell == Cell::Lstm) cell_of(turn, i) = is_there ? call.cell_state[state_of(unit, i)] : 0;
      if (Products::kKeepsOwnStates)
        own_states[(turn * rows_of_lane + i) * kThreads] = is_there ? call.state[state_of(unit, i)] : 0;
    }

#if __CUDA_ARCH__ >= 900
  const bool is_cluster = gridDim.y > 1 && !by.is_across;
  const int words_of_row = (hidden + Products::kUnitsOfWord - 1) / Products::kUnitsOfWord;
  const int log_blocks = __popc(gridDim.y - 1);
  uint64_t* const barriers = reinterpret_cast<uint64_t*>(shared);  // of each of the two steps
  const auto barrier_of = [&](int k) { return tiles::address_of(barriers + k % 2); };
  // All states of a step, from all blocks; thread 0 says so for each step, when it has those of two steps before. Those
  // are read until a block's own states of the step between are stored, without which no block stores into that place
  // again, nor does its barrier come to its next phase but one. So all blocks have units, and with them their first
  // warps; a warp without would miss a phase, and ends.
  const auto expect_states = [&](int k) {
    if (thread == 0) tiles::expect_bytes(barrier_of(k), rows * words_of_row * static_cast<int>(sizeof(float)));
  };
  // They are in the block's own shared memory, and no cache is before it: wait_for_cluster_at(), of the scope that
  // PTX has for what others store, would empty the first cache each step.
  const auto wait_for_states = [&](int k) { tiles::wait_at(barrier_of(k), (k - 1) / 2 % 2); };
  if (is_cluster) {
    if (thread == 0) {
      tiles::prepare(barrier_of(0), 1);
      tiles::prepare(barrier_of(1), 1);
    }
    expect_states(1);
    tiles::wait_for_cluster();
    if (first_of_warp >= last_unit) return;
  } else {
    __syncthreads();
  }
#else
  __syncthreads();
#endif

  // Of the first turn and sequence: where inputs are that are fetched next, and results are to be stored.
  const int64_t line = static_cast<int64_t>(call.directions) * gates * hidden,
                first_step = is_backwards ? call.steps - 1 : 0, direction_of_time = is_backwards ? -1 : 1;
  const float* input =
      call.sums + (first_step * call.batch + row) * line + (direction * gates + gate) * hidden + first_unit;
  const int64_t next_input = direction_of_time * call.batch * line;
  float* result = call.result;
  const int64_t next_result = direction_of_time * call.directions * call.batch * hidden;
  if (result) result += first_step * call.directions * call.batch * hidden + state_of(first_unit, 0);
  // A lane copies what it reads itself.
  const auto fetch_inputs = [&](int k) {
    if (by.is_ahead && has_gate && k < call.steps)
#pragma unroll 1
      for (int turn = 0; turn < turns; turn++)
#pragma unroll
        for (int i = 0; i < rows_of_lane; i++)
          if (first_unit + turn * units_at_once < last_unit && row + i < call.batch)
            tiles::copy_piece<sizeof(float)>(tiles::address_of(&input_of(k, turn, i)),
                                             input + turn * units_at_once + i * line, true);
    tiles::end_stage();
    input += next_input;
  };
  int64_t own_steps[rows_of_lane];
#pragma unroll
  for (int i = 0; i < rows_of_lane; i++)
    own_steps[i] = call.lengths && row + i < call.batch ? call.lengths[row + i] : call.steps;
  // States that other blocks have written for the step before, several fours at once: hidden sizes are multiples of
  // four there. A sequence that has ended keeps its own.
  const auto gather_states = [&](int k) {
    const int step = is_backwards ? call.steps - k : k - 1, lines = lesser(rows, call.batch - first_row);
    const float* const from =
        call.result + ((static_cast<int64_t>(step) * call.directions + direction) * call.batch + first_row) * hidden;
    float* const to = states + k % 2 * states_size;
    const float* const before = states + (k - 1) % 2 * states_size;
    // A thread has one line's, several at once, and asks again for all that have not come: one after another they would
    // each take as long as the first. Threads beside each other store into different banks.
    constexpr int kAtOnce = lesser(rows, 8), kApart = 4 * kThreads / rows;
    const int line = thread % rows;
    if (line >= lines) return;
    const bool has_ended = call.lengths && step >= call.lengths[first_row + line];
#pragma unroll 1
    for (int first = thread / rows * 4; first < hidden; first += kAtOnce * kApart) {
      float4 fours[kAtOnce];
      const auto unit = [&](int i) { return first + i * kApart; };
#pragma unroll
      for (int i = 0; i < kAtOnce; i++) fours[i].x = __uint_as_float(unit(i) < hidden ? kUnwritten : 0);
      bool has_all = false;
      while (!has_all) {
#pragma unroll
        for (int i = 0; i < kAtOnce; i++)
          if (unit(i) < hidden && !is_written(fours[i]))
            fours[i] = tiles::read_anew(from + static_cast<int64_t>(line) * hidden + unit(i));
        has_all = true;
#pragma unroll
        for (int i = 0; i < kAtOnce; i++) has_all = has_all && (unit(i) >= hidden || is_written(fours[i]));
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; i++)
        if (unit(i) < hidden) Products::put_four(to, before, has_ended, unit(i), line, fours[i]);
    }
  };
#pragma unroll 1
  for (int k = 0; k < kAhead; k++) fetch_inputs(k);
  for (int k = 0; k < call.steps; k++) {
    const int step = is_backwards ? call.steps - 1 - k : k;
    const float* const now = states + k % 2 * states_size;
    float* const next = states + (k + 1) % 2 * states_size;
    fetch_inputs(k + kAhead);
    if (by.is_across && k > 0) {
      gather_states(k);
      __syncthreads();
    }
#if __CUDA_ARCH__ >= 900
    if (is_cluster) {
      if (k > 0) wait_for_states(k);
      expect_states(k + 2);
    }
#endif
#pragma unroll 1  // code of steps that does not fit the instruction cache takes longer than what it computes
    for (int turn = 0; turn < turns; turn++) {
      const int first = first_of_warp + turn * units_at_once, unit = first_unit + turn * units_at_once;
      if (first >= last_unit) break;
      const bool is_there = unit < last_unit;
      const float bias =  // on its way while states are multiplied
          call.bias && gate < gates && is_there ? call.bias[(direction * gates + gate) * hidden + unit] : 0;
      tiles::wait_for_own_stages<kAhead>();
      float x[rows_of_lane], before[rows_of_lane];
#pragma unroll
      for (int i = 0; i < rows_of_lane; i++) {
        const bool has_input = has_gate && is_there && row + i < call.batch;
        x[i] = !has_input    ? 0
               : by.is_ahead ? input_of(k, turn, i)
                             : input[turn * units_at_once + i * line - (kAhead + 1) * next_input];
        before[i] = is_there ? own_state_of(now, turn, i) : 0;
      }
      typename Products::Sums sums;
      if (turn == 0) {
#pragma unroll
        for (int j = 0; j < held; j++) Products::add(sums, own[j], now, j, lane);
      }
#pragma unroll 1
      for (int j = turn == 0 ? held : 0; j < by.fours; j++) {
        Weights weights;
        if (const int number = number_of(turn, j); number < by.kept) {
#pragma unroll
          for (int p = 0; p < pieces; p++) weights.pieces[p] = kept[(number * pieces + p) * kThreads];
        } else {
          load(turn, j, weights);
        }
        Products::add(sums, weights, now, j, lane);
      }
      float s[rows_of_lane], made[rows_of_lane], cell_states[rows_of_lane];
      Products::finish(sums, lane, s);
      const float* const peepholes =
          cell == Cell::Lstm && call.peepholes ? call.peepholes + direction * 3 * hidden + unit : nullptr;
      bool is_running[rows_of_lane];
#pragma unroll
      for (int i = 0; i < rows_of_lane; i++) {
        is_running[i] = step < own_steps[i];
        cell_states[i] = cell == Cell::Lstm ? cell_of(turn, i) : 0;
        made[i] = next_state<cell>(x[i], s[i] + bias, lane_of_row, gate, peepholes, is_there, hidden, before[i],
                                   cell_states[i]);
        if (!is_running[i]) made[i] = before[i];
      }
#if __CUDA_ARCH__ >= 900
      if (is_cluster)
        send_to_all<units_of_warp, Products>(made, lane, log_blocks, next, barriers + (k + 1) % 2, first, last_unit);
      const bool stores_itself = !is_cluster && (!by.is_across || k + 1 == call.steps);  // else they are gathered
#else
      constexpr bool stores_itself = true;
#endif
#pragma unroll
      for (int i = 0; i < rows_of_lane; i++) {
        if (stores_itself && has_unit && is_there) Products::put(next, unit, row_of_lane + i, made[i]);
        if (Products::kKeepsOwnStates) own_states[(turn * rows_of_lane + i) * kThreads] = made[i];
        if (cell == Cell::Lstm && is_running[i]) cell_of(turn, i) = cell_states[i];
        if (!result || !has_unit || !is_there || row + i >= call.batch) continue;
        float* const to = result + turn * units_at_once + i * hidden;
        const float given = is_running[i] ? made[i] : 0;
        if (by.is_across)
          tiles::write_for_all(to, given);  // never kUnwritten: what arithmetic makes is none or another NaN
        else
          *to = given;
      }
    }
    if (result) result += next_result;
    if (gridDim.y == 1) __syncthreads();
  }
#if __CUDA_ARCH__ >= 900
  // No block ends before all has come that others store into it.
  if (is_cluster && call.steps > 0) wait_for_states(call.steps);
#endif
  if (!has_unit) return;
  for (int turn = 0; turn < turns; turn++)
    for (int i = 0; i < rows_of_lane; i++)
      if (const int unit = first_unit + turn * units_at_once; unit < last_unit && row + i < call.batch) {
        if (call.last) call.last[state_of(unit, i)] = own_state_of(states + call.steps % 2 * states_size, turn, i);
        if (cell == Cell::Lstm && call.last_cell) call.last_cell[state_of(unit, i)] = cell_of(turn, i);
      }
}

}  // namespace recurrences
}  // namespace gopt_runtime
