// RNN, GRU and LSTM, all steps in one launch. A cluster of blocks has a direction and some sequences of the batch; each
// block has some hidden units with all of their gates, and keeps the weights of these in its shared memory, where they
// fit. What a block makes of a step it writes into the shared memory of all blocks of the cluster, and a barrier of the
// cluster stands between two steps (Diamos et al., Persistent RNNs, ICML'16, section 3, by registers and a barrier of
// the device). Without clusters a block has all units.
#pragma once

#include <cstdint>
#include <stdexcept>

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

// Tensors are dense; null where the operator has none.
struct Call {
  const float* sums;                 // [steps, batch, directions, gates, hidden]: the input's part, with biases
  const float* weights;              // [directions, hidden, gates, hidden]
  const float* state;                // [directions, batch, hidden]
  const float* cell_state;           // likewise
  const float* bias;                 // [directions, gates, hidden], added before a GRU's reset gate
  const float* peepholes;            // [directions, 3, hidden], of gates i, o and f
  const int64_t* lengths;            // [batch]
  float *result, *last, *last_cell;  // [steps, directions, batch, hidden]; as the states
  int steps, batch, directions, hidden;
  bool is_reversed;        // the first direction; a second one always is
  bool has_fixed_weights;  // they are there before the kernel before has ended
};

// How a block's columns, which are its units of each gate in turn, and the depth are divided among its threads.
struct Division {
  int units;    // of a block
  int columns;  // in whole warps
  int slices;   // of the depth
  bool keeps_weights;
};

__device__ __forceinline__ float logistic(float x) { return 1.0f / (1.0f + expf(-x)); }

template <int rows>
__host__ __device__ inline int room_floats(const Division& by, int hidden) {
  const int depth = (hidden + 3) / 4 * 4;
  return (by.keeps_weights ? depth * by.columns : 0) + 2 * rows * depth + by.slices * rows * by.columns +
         rows * by.units;
}

template <int gates>
class Weights {
 public:
  __device__ __forceinline__ Weights(const Call& call, const Division& by, int direction, int first_unit)
      : from_(call.weights + static_cast<int64_t>(direction) * call.hidden * gates * call.hidden),
        hidden_(call.hidden),
        units_(by.units),
        first_(first_unit) {}
  // Of a column, four of the depth; zeros beyond what there is.
  __device__ __forceinline__ float4 at(int four, int column) const {
    const int gate = column / units_, unit = first_ + column % units_;
    if (gate >= gates || unit >= hidden_) return float4{0, 0, 0, 0};
    const float* own = from_ + (static_cast<int64_t>(4 * four) * gates + gate) * hidden_ + unit;
    const int64_t next = static_cast<int64_t>(gates) * hidden_;
    const int left = hidden_ - 4 * four;
    return float4{own[0], left > 1 ? own[next] : 0, left > 2 ? own[2 * next] : 0, left > 3 ? own[3 * next] : 0};
  }

 private:
  const float* from_;
  const int hidden_, units_, first_;
};

__device__ __forceinline__ void leave_step() {
#if __CUDA_ARCH__ >= 900
  if (gridDim.y > 1) return tiles::wait_for_cluster();
#endif
  __syncthreads();
}

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

template <Cell cell, int rows>
__global__ void __launch_bounds__(kThreads) take_all_steps(const Call call, const Division by) {
  extern __shared__ float4 recurrence_room[];
  constexpr int gates = kGates<cell>;
  const int thread = static_cast<int>(threadIdx.x), hidden = call.hidden, fours = (hidden + 3) / 4, depth = 4 * fours;
  float4* const kept = recurrence_room;
  float* const states = reinterpret_cast<float*>(kept + (by.keeps_weights ? fours * by.columns : 0));
  float *const parts = states + 2 * rows * depth, *const cells = parts + by.slices * rows * by.columns;
  const int direction = static_cast<int>(blockIdx.x) % call.directions,
            first_row = static_cast<int>(blockIdx.x) / call.directions * rows;
  const int first_unit = static_cast<int>(blockIdx.y) * by.units;
  const bool is_backwards = call.is_reversed || direction == 1;
  const Weights<gates> weights(call, by, direction, first_unit);

  gopt_let_next_begin();
  if (!call.has_fixed_weights) gopt_wait();
  if (by.keeps_weights)
    for (int i = thread; i < fours * by.columns; i += kThreads) kept[i] = weights.at(i / by.columns, i % by.columns);
  gopt_wait();
  for (int i = thread; i < 2 * rows * depth; i += kThreads) {
    const int unit = i % depth, row = first_row + i / depth;
    const bool is_there = i < rows * depth && unit < hidden && row < call.batch;
    states[i] = is_there ? call.state[(static_cast<int64_t>(direction) * call.batch + row) * hidden + unit] : 0;
  }
  // Its own unit of a sequence; of many more follow.
  struct Own {
    int row, unit;  // of the block's
    bool is_there;
    int64_t state;  // where it lies among states
  };
  const auto own_of = [&](int number) {
    Own own{number / by.units, number % by.units, false, 0};
    const int row = first_row + own.row, unit = first_unit + own.unit;
    own.is_there = own.row < rows && row < call.batch && unit < hidden;
    own.state = (static_cast<int64_t>(direction) * call.batch + row) * hidden + unit;
    return own;
  };
  if (cell == Cell::Lstm)
    for (int i = thread; i < rows * by.units; i += kThreads)
      if (const Own own = own_of(i); own.is_there) cells[i] = call.cell_state[own.state];
  leave_step();

  const int at_once = by.columns < kThreads ? by.columns : kThreads, slice = thread / at_once,
            of_slice = (fours + by.slices - 1) / by.slices, first_four = slice * of_slice,
            last_four = first_four + of_slice < fours ? first_four + of_slice : fours;
  const Own first = own_of(thread);
  for (int k = 0; k < call.steps; k++) {
    const int step = is_backwards ? call.steps - 1 - k : k;
    const auto inputs_of = [&](const Own& own, float(&x)[gates]) {
      const int64_t line =
          (static_cast<int64_t>(step) * call.batch + first_row + own.row) * call.directions + direction;
#pragma unroll
      for (int g = 0; g < gates; g++)
        x[g] = own.is_there ? call.sums[(line * gates + g) * hidden + first_unit + own.unit] : 0;
    };
    float x[gates];
    inputs_of(first, x);  // on its way while states are multiplied
    const float* const now = states + k % 2 * rows * depth;
    float* const next = states + (k + 1) % 2 * rows * depth;
    if (slice < by.slices)
      for (int column = thread % at_once; column < by.columns; column += at_once) {
        float sums[rows] = {};
#pragma unroll 4
        for (int four = first_four; four < last_four; four++) {
          const float4 w = by.keeps_weights ? kept[four * by.columns + column] : weights.at(four, column);
#pragma unroll
          for (int r = 0; r < rows; r++) {
            const float4 h = reinterpret_cast<const float4*>(now + r * depth)[four];
            sums[r] += h.x * w.x + h.y * w.y + h.z * w.z + h.w * w.w;
          }
        }
#pragma unroll
        for (int r = 0; r < rows; r++) parts[(slice * rows + r) * by.columns + column] = sums[r];
      }
    __syncthreads();
    for (int i = thread; i < rows * by.units; i += kThreads) {
      const Own own = i == thread ? first : own_of(i);
      if (!own.is_there) continue;
      if (i != thread) inputs_of(own, x);
      const int unit = first_unit + own.unit, row = first_row + own.row;
      float s[gates];
#pragma unroll
      for (int g = 0; g < gates; g++) {
        s[g] = call.bias ? call.bias[(direction * gates + g) * hidden + unit] : 0;
        for (int part = 0; part < by.slices; part++)
          s[g] += parts[(part * rows + own.row) * by.columns + g * by.units + own.unit];
      }
      const float before = now[own.row * depth + unit];
      const float* const peepholes =
          cell == Cell::Lstm && call.peepholes ? call.peepholes + direction * 3 * hidden + unit : nullptr;
      float cell_state = cell == Cell::Lstm ? cells[i] : 0;
      float made = next_state<cell>(x, s, peepholes, hidden, before, cell_state);
      const bool is_running = !call.lengths || step < call.lengths[row];
      call.result[((static_cast<int64_t>(step) * call.directions + direction) * call.batch + row) * hidden + unit] =
          is_running ? made : 0;
      if (!is_running) made = before;
      if (cell == Cell::Lstm && is_running) cells[i] = cell_state;
      float* const there = next + own.row * depth + unit;
#if __CUDA_ARCH__ >= 900
      for (int block = 0; block < static_cast<int>(gridDim.y); block++)
        *const_cast<float*>(tiles::in_block(there, block)) = made;
#else
      *there = made;
#endif
    }
    leave_step();
  }
  for (int i = thread; i < rows * by.units; i += kThreads)
    if (const Own own = own_of(i); own.is_there) {
      call.last[own.state] = states[call.steps % 2 * rows * depth + own.row * depth + first_unit + own.unit];
      if (cell == Cell::Lstm) call.last_cell[own.state] = cells[i];
    }
}

// Blocks of a cluster: as many as keep so many bytes of weights each, where there are so many.
constexpr int64_t kBytesOfBlock = 64 << 10;
inline int blocks_wanted(int hidden, int gates, int most) {
  int blocks = 1;
  while (blocks < most && 4 * static_cast<int64_t>(hidden) * hidden * gates > blocks * kBytesOfBlock) blocks *= 2;
  return blocks;
}

inline Division divide(int hidden, int gates, int blocks) {
  Division by{(hidden + blocks - 1) / blocks, 0, 1, true};
  by.columns = (by.units * gates + 31) / 32 * 32;
  if (by.columns < kThreads) by.slices = kThreads / by.columns;
  return by;
}

// Whether the device runs a cluster of so many blocks at once.
inline bool has_room(const void* kernel, int blocks, int bytes) {
  if (blocks == 1) return true;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.y = static_cast<unsigned>(blocks),
  attribute.val.clusterDim.x = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1, static_cast<unsigned>(blocks)), config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = static_cast<size_t>(bytes);
  config.attrs = &attribute, config.numAttrs = 1;
  int clusters = 0;
  const bool has = cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess && clusters > 0;
  (void)cudaGetLastError();  // which the next launch would be blamed for
  return has;
}

// Errors are found by cudaGetLastError after all launches. Throws where even a device's whole shared memory is too
// little for the states.
template <Cell cell, int rows>
void launch(Call call, cudaStream_t stream) {
  const auto* const kernel = reinterpret_cast<const void*>(&take_all_steps<cell, rows>);
  int device = 0, most_bytes = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&most_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  Division by{};
  int bytes = 0, blocks = 2 * blocks_wanted(call.hidden, kGates<cell>, most_blocks_of_cluster(kernel, kThreads));
  do {
    blocks /= 2;
    by = divide(call.hidden, kGates<cell>, blocks);
    bytes = 4 * room_floats<rows>(by, call.hidden);
    if (bytes > most_bytes) {
      by.keeps_weights = false;
      bytes = 4 * room_floats<rows>(by, call.hidden);
    }
    if (bytes > most_bytes) throw std::runtime_error("a recurrence's states are too large for the device's blocks");
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  } while (!has_room(kernel, blocks, bytes));
  void* passed[] = {&call, &by};
  const int groups = (call.batch + rows - 1) / rows;
  launch_dependent(kernel,
                   {.grid = dim3(static_cast<unsigned>(call.directions * groups), static_cast<unsigned>(blocks)),
                    .threads = dim3(kThreads),
                    .shared_bytes = static_cast<size_t>(bytes),
                    .cluster = blocks},
                   passed, stream);
}

}  // namespace recurrences
}  // namespace gopt_runtime
