// Recurrences of several sequences on the tensor cores, by blocks of the whole device: each has sixteen hidden units
// with all of their gates, and each of its warps a share of the depth, so that it reads the states of that share alone,
// from where the blocks that made them wrote them for all, straight into the registers of its products. What warps have
// is added up in shared memory. Weights and states are rounded to halves, sums are floats.
#pragma once

#include <cstdint>

#include "gopt_launch.h"
#include "gopt_recurrence_halves.cuh"

namespace gopt_runtime {
namespace recurrences {
namespace shares {

// A product of tiles is of sixteen units, one gate of each, by as many units of depth, for eight sequences. States of
// two tiles of depth, a pair, are 16 bytes of a lane. A warp has every eighth pair; of so many it keeps the weights in
// registers, of the others in shared memory.
constexpr int kUnits = 16, kSequences = 8, kHeldPairs = 4;
constexpr int kStates = kUnits * kSequences;  // that a block makes of eight sequences
constexpr int kWordsOfPair = 4 * kLanes;      // of 32 bits
__host__ __device__ constexpr int blocks_of(int hidden) { return (hidden + kUnits - 1) / kUnits; }
__host__ __device__ constexpr int pairs_of(int hidden) { return (blocks_of(hidden) + 1) / 2; }
__host__ __device__ constexpr int rounds_of(int hidden) { return (pairs_of(hidden) + kWarps - 1) / kWarps; }

// Blocks have a direction and so many sequences, eight times `eights`.
__host__ __device__ constexpr int groups_of(int directions, int batch, int eights) {
  return directions * ((batch + kSequences * eights - 1) / (kSequences * eights));
}
// States of two steps in turn, of all groups. A word says by its last bit of which of them it is: that of the next but
// one has the other. (It is the last bit of a half, and is multiplied as it is.)
constexpr int64_t bytes_of_exchange(int directions, int batch, int hidden, int eights) {
  return 2LL * groups_of(directions, batch, eights) * eights * pairs_of(hidden) * kWordsOfPair * 4;
}
// An error is better than a wait without end: to ask so often takes many seconds.
constexpr unsigned kMostAsked = 1u << 25;
__device__ __forceinline__ unsigned phase_of(int k) { return static_cast<unsigned>(k - 1) >> 1 & 1; }

// Floats of a unit's gates as warps leave them: four of an LSTM, and of a GRU, which has three.
template <Cell cell>
constexpr int kSums = kGates<cell> == 1 ? 1 : 4;
template <Cell cell>
constexpr int kBytesOfRound = 2 * kGates<cell>* static_cast<int>(sizeof(uint4)) * kThreads;
// A block's shared memory: weights, and what warps add up.
template <Cell cell, int held>
__host__ __device__ constexpr int bytes_of_weights(int hidden) {
  return rounds_of(hidden) > held ? (rounds_of(hidden) - held) * kBytesOfRound<cell> : 0;
}
template <Cell cell, int eights, int held>
constexpr int room_bytes(int hidden) {
  return bytes_of_weights<cell, held>(hidden) +
         kWarps * eights * kStates * kSums<cell> * static_cast<int>(sizeof(float));
}

// A tile of weights: of gate `gate` of units from `unit` on, by the depth from `depth` on.
__device__ __forceinline__ uint4 weights_of(const Call& call, int direction, int gates, int gate, int unit, int depth,
                                            int lane) {
  const int hidden = call.hidden;
  const float* const from = call.weights + static_cast<int64_t>(direction * gates + gate) * hidden * hidden;
  const auto at = [&](int row, int column) {
    const int u = unit + lane / 4 + row, k = depth + lane % 4 * 2 + column;
    const auto one = [&](int d) {
      return u < hidden && k + d < hidden ? from[static_cast<int64_t>(u) * hidden + k + d] : 0.0f;
    };
    return halves_of(one(0), one(1));
  };
  return {at(0, 0), at(8, 0), at(0, 8), at(8, 8)};
}

// As next_state(), by one thread, which has all gates of the unit.
template <Cell cell>
__device__ __forceinline__ float state_after(const float* x, const float* s, const float* peepholes, int hidden,
                                             float before, float& cell_state) {
  if constexpr (cell == Cell::Lstm) {
    float input = x[0] + s[0], output = x[1] + s[1], forget = x[2] + s[2];
    if (peepholes) input += peepholes[0] * cell_state, forget += peepholes[2 * hidden] * cell_state;
    cell_state = logistic_or_tanh(forget, false) * cell_state +
                 logistic_or_tanh(input, false) * logistic_or_tanh(x[3] + s[3], true);
    if (peepholes) output += peepholes[hidden] * cell_state;
    return logistic_or_tanh(output, false) * logistic_or_tanh(cell_state, true);
  } else if constexpr (cell == Cell::Gru) {
    const float kept = logistic_or_tanh(x[0] + s[0], false), reset = logistic_or_tanh(x[1] + s[1], false),
                candidate = logistic_or_tanh(x[2] + reset * s[2], true);
    return (1.0f - kept) * candidate + kept * before;
  } else {
    const float sum = x[0] + s[0];
    return cell == Cell::Relu ? (sum < 0.0f ? 0.0f : sum) : logistic_or_tanh(sum, true);
  }
}

// Blocks (y) have sixteen units each, blocks (x) a group. `exchange`: bytes_of_exchange(), all bits ones. `has_kept`:
// not all weights are in registers.
template <Cell cell, int eights, int held, bool has_kept>
__global__ void __launch_bounds__(kThreads) take_steps_by_shares(const Call call, unsigned* exchange) {
  constexpr int gates = kGates<cell>, sums = kSums<cell>, items = eights * kStates,
                own_items = items > kThreads ? items / kThreads : 1, items_apart = kThreads / kStates,
                together = eights > 1 ? 2 : 1;
  extern __shared__ __align__(128) char shared[];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, warp = thread / kLanes,
            hidden = call.hidden, block = static_cast<int>(blockIdx.y), blocks = static_cast<int>(gridDim.y);
  const int direction = static_cast<int>(blockIdx.x) % call.directions,
            first_row = static_cast<int>(blockIdx.x) / call.directions * eights * kSequences,
            first_unit = block * kUnits;
  const bool is_backwards = call.is_reversed || direction == 1;
  const int pairs = pairs_of(hidden), rounds = rounds_of(hidden), own_rounds = (pairs - warp + kWarps - 1) / kWarps;
  uint4* const kept = reinterpret_cast<uint4*>(shared) + thread;
  float* const partial = reinterpret_cast<float*>(shared + bytes_of_weights<cell, held>(hidden));
  const int words_of_eight = pairs * kWordsOfPair,
            words_of_step = static_cast<int>(gridDim.x) * eights * words_of_eight;
  unsigned* const region = exchange + static_cast<int>(blockIdx.x) * eights * words_of_eight;

  gopt_let_next_begin();
  if (!call.has_fixed_weights) gopt_wait();
  const auto load = [&](int round, int half, int g) {
    return weights_of(call, direction, gates, g, first_unit, (2 * (warp + round * kWarps) + half) * kUnits, lane);
  };
  uint4 own[held][2][gates];
#pragma unroll
  for (int r = 0; r < held; r++)
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
      for (int g = 0; g < gates; g++) own[r][half][g] = load(r, half, g);
#pragma unroll 1
  for (int i = held * 2 * gates; has_kept && i < rounds * 2 * gates; i++)
    kept[(i - held * 2 * gates) * kThreads] = load(i / (2 * gates), i / gates % 2, i % gates);
  for (int i = thread; i < kWarps * items * sums; i += kThreads) partial[i] = 0;
  gopt_wait();

  // What a thread finishes: one unit of one sequence, or of several of those that lie eight apart.
  const int of_eight = thread % kStates, quarter = of_eight / kLanes, unit_of_block = lane / 4 + quarter / 2 * 8,
            unit = first_unit + unit_of_block, sequence = lane % 4 * 2 + quarter % 2;
  const bool finishes = thread < items;
  const auto eight_of = [&](int item) { return thread / kStates + item * items_apart; };
  const auto row_of = [&](int item) { return first_row + eight_of(item) * kSequences + sequence; };
  const auto state_of = [&](int item) {
    return (static_cast<int64_t>(direction) * call.batch + row_of(item)) * hidden + unit;
  };
  float states[own_items], cells[own_items], biases[gates];
  int own_steps[own_items];
  bool is_there[own_items];
#pragma unroll
  for (int i = 0; i < own_items; i++) {
    is_there[i] = finishes && unit < hidden && row_of(i) < call.batch;
    states[i] = is_there[i] ? call.state[state_of(i)] : 0;
    cells[i] = cell == Cell::Lstm && is_there[i] ? call.cell_state[state_of(i)] : 0;
    own_steps[i] = call.lengths && is_there[i] ? static_cast<int>(call.lengths[row_of(i)]) : call.steps;
  }
#pragma unroll
  for (int g = 0; g < gates; g++)
    biases[g] = call.bias && is_there[0] ? call.bias[(direction * gates + g) * hidden + unit] : 0;
  const float* const peepholes =
      cell == Cell::Lstm && call.peepholes && is_there[0] ? call.peepholes + direction * 3 * hidden + unit : nullptr;

  // Halves, of two units beside each other, where the next step's products have them: who reads a step's states has
  // nobody's of the next but one in that place, since all have read them before they make those.
  const auto tell = [&](int k, int eight, float made) {
    const float other = __shfl_down_sync(~0u, made, 4);
    if (lane / 4 % 2 != 0) return;
    float* const to = reinterpret_cast<float*>(region) + k % 2 * words_of_step + eight * words_of_eight +
                      block / 2 * kWordsOfPair + (sequence * 4 + unit_of_block % 8 / 2) * 4 + unit_of_block / 8;
    const unsigned phase = phase_of(k);
    tiles::write_for_all(to + block % 2 * 2, __uint_as_float((halves_of(made, other) & ~1u) | phase));
    if (block % 2 == 0 && block + 1 == blocks) tiles::write_for_all(to + 2, __uint_as_float(phase));  // nobody's else
  };
  __syncthreads();  // before a warp leaves sums where another clears
  if (finishes)
#pragma unroll
    for (int i = 0; i < own_items; i++) tell(1, eight_of(i), states[i]);

  const int64_t line = static_cast<int64_t>(call.directions) * gates * hidden,
                next_x = (is_backwards ? -1 : 1) * call.batch * line,
                next_result = static_cast<int64_t>(is_backwards ? -1 : 1) * call.directions * call.batch * hidden;
  const int first_step = is_backwards ? call.steps - 1 : 0;
  const float* x_of = call.sums + (static_cast<int64_t>(first_step) * call.batch + row_of(0)) * line +
                      direction * gates * hidden + unit;
  float* result = call.result;
  if (result) result += static_cast<int64_t>(first_step) * call.directions * call.batch * hidden + state_of(0);
  const int rows_apart = items_apart * kSequences;

  const float* const read_from = reinterpret_cast<const float*>(region) + (warp * kLanes + lane) * 4;
#pragma unroll 1
  for (int k = 1; k <= call.steps; k++) {
    float x[own_items][gates];
#pragma unroll
    for (int i = 0; i < own_items; i++)
#pragma unroll
      for (int g = 0; g < gates; g++) x[i][g] = is_there[i] ? x_of[i * rows_apart * line + g * hidden] : 0;
    x_of += next_x;
    const float* const now_from = read_from + k % 2 * words_of_step;
    const unsigned flip = phase_of(k) ? ~0u : 0;
#pragma unroll 1
    for (int eight = 0; eight < eights; eight += together) {
      float of_gates[together][gates][4] = {};
#pragma unroll 1
      for (int first = 0; first < own_rounds; first += held) {
        float4 now[together][held];
#pragma unroll
        for (int t = 0; t < together; t++)
#pragma unroll
          for (int r = 0; r < held; r++)  // of rounds that there are not, nothing is missing
            now[t][r].x = now[t][r].y = now[t][r].z = now[t][r].w = __uint_as_float(flip);
        // All that has not come is asked for at once, and all again: one after another each would take as long.
        unsigned left = 0, asked = 0;
        do {
          left = 0;
#pragma unroll
          for (int t = 0; t < together; t++)
#pragma unroll
            for (int r = 0; r < held; r++)
              if (first + r < own_rounds)
                now[t][r] =
                    tiles::read_anew(now_from + (eight + t) * words_of_eight + (first + r) * (kWarps * kWordsOfPair));
#pragma unroll
          for (int t = 0; t < together; t++)
#pragma unroll
            for (int r = 0; r < held; r++) {
              const float4& four = now[t][r];
              left |= (__float_as_uint(four.x) ^ flip) | (__float_as_uint(four.y) ^ flip);
              left |= (__float_as_uint(four.z) ^ flip) | (__float_as_uint(four.w) ^ flip);
            }
          if (++asked == kMostAsked) __trap();
        } while ((left & 1) != 0);
        __syncwarp();
        const auto multiply = [&](int r, const auto& weights_at) {
#pragma unroll
          for (int half = 0; half < 2; half++)
#pragma unroll
            for (int g = 0; g < gates; g++) {
              const uint4 weights = weights_at(half, g);
              const unsigned a[4] = {weights.x, weights.y, weights.z, weights.w};
#pragma unroll
              for (int t = 0; t < together; t++) {
                const float4& four = now[t][r];
                const unsigned b[2] = {__float_as_uint(half == 0 ? four.x : four.z),
                                       __float_as_uint(half == 0 ? four.y : four.w)};
                tiles::Half::mma(of_gates[t][g], a, b);
              }
            }
        };
        const uint4* const from = kept + (first - held) * 2 * gates * kThreads;
        if (!has_kept || first == 0) {
#pragma unroll
          for (int r = 0; r < held; r++)
            if (r < own_rounds) multiply(r, [&](int half, int g) { return own[r][half][g]; });
        } else {
#pragma unroll
          for (int r = 0; r < held; r++)
            if (first + r < own_rounds)
              multiply(r, [&](int half, int g) { return from[((r * 2 + half) * gates + g) * kThreads]; });
        }
        if (!has_kept) break;  // there are no others
      }
      if (own_rounds <= 0) break;
      float* const to = partial + (warp * items + eight * kStates + lane) * sums;
#pragma unroll
      for (int t = 0; t < together; t++)
#pragma unroll
        for (int j = 0; j < 4; j++)
          if constexpr (sums == 1)
            to[(t * 4 + j) * kLanes] = of_gates[t][0][j];
          else
            reinterpret_cast<float4*>(to)[(t * 4 + j) * kLanes] = float4{
                of_gates[t][0][j], of_gates[t][1][j], of_gates[t][2][j], gates == 4 ? of_gates[t][gates - 1][j] : 0};
    }
    __syncthreads();
    if (finishes) {
      const int step = is_backwards ? call.steps - k : k - 1;
#pragma unroll
      for (int i = 0; i < own_items; i++) {
        float s[4] = {};
#pragma unroll
        for (int w = 0; w < kWarps; w++) {
          const float* const from = partial + (w * items + eight_of(i) * kStates + of_eight) * sums;
          if constexpr (sums == 1) {
            s[0] += from[0];
          } else {
            const float4 four = *reinterpret_cast<const float4*>(from);
            s[0] += four.x, s[1] += four.y, s[2] += four.z, s[3] += four.w;
          }
        }
#pragma unroll
        for (int g = 0; g < gates; g++) s[g] += biases[g];
        const bool is_running = is_there[i] && step < own_steps[i];
        float cell_state = cells[i];
        const float made = state_after<cell>(x[i], s, peepholes, hidden, states[i], cell_state);
        if (is_running) states[i] = made, cells[i] = cell_state;
        if (k < call.steps) tell(k + 1, eight_of(i), states[i]);
        if (result && is_there[i]) result[i * rows_apart * static_cast<int64_t>(hidden)] = is_running ? states[i] : 0;
      }
      if (result) result += next_result;
    }
    // Sums have been read; and warps that have nothing to finish would ask all the while for what is not there.
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < own_items; i++)
    if (is_there[i]) {
      if (call.last) call.last[state_of(i)] = states[i];
      if (cell == Cell::Lstm && call.last_cell) call.last_cell[state_of(i)] = cells[i];
    }
}

}  // namespace shares
}  // namespace recurrences
}  // namespace gopt_runtime
