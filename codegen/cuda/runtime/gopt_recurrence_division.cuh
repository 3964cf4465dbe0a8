// How a recurrence's units are divided among blocks, and what a block's shared memory has: barriers, weights, cell
// states, inputs, and the states of two steps, in this order.
#pragma once

#include "gopt_recurrence_step.cuh"

namespace gopt_runtime {
namespace recurrences {

struct Division {
  int units, turns;  // of a block
  int fours;         // of the depth, of a lane
  bool is_ahead;     // inputs have room in shared memory before their step
  bool is_across;    // blocks that are no cluster, and meet in memory
  int kept;  // of all turns' fours after those in registers so many are in shared memory, others stay where they are
};

constexpr int kBarrierBytes = 128;  // at the begin of a block's shared memory; what follows is aligned to as many

// Inputs of so many steps are on their way to shared memory while a step is computed.
constexpr int kAhead = 3;

// In floats, of a block: cell states, its own units' states where others are less exact, and inputs.
template <Cell cell, int rows>
__host__ __device__ constexpr int cells_of(int turns) {
  return cell == Cell::Lstm ? turns * kRowsOfLane<rows> * kThreads : 0;
}
template <class Products>
__host__ __device__ constexpr int own_states_of(int turns) {
  return Products::kKeepsOwnStates ? turns * kRowsOfLane<Products::rows> * kThreads : 0;
}
template <int rows>
__host__ __device__ constexpr int inputs_of(const Division& by) {
  return by.is_ahead ? (kAhead + 1) * by.turns * kRowsOfLane<rows> * kThreads : 0;
}

// A block's shared memory without weights, and what one four of all threads' weights takes of it.
template <Cell cell, class Products, int held>
constexpr int64_t bytes_without_weights(const Division& by) {
  constexpr int rows = Products::rows;
  const int64_t fours = by.fours + held - lesser(by.fours, held);
  return kBarrierBytes + 4 * (cells_of<cell, rows>(by.turns) + own_states_of<Products>(by.turns) + inputs_of<rows>(by) +
                              2 * Products::count_of_states(4 * kLanes * fours));
}
template <class Products>
constexpr int64_t kBytesOfFour = 16LL * Products::kPieces* kThreads;

// So many units, and what is left of the last one's word.
template <class Products>
int whole_words(int units) {
  return (units + Products::kUnitsOfWord - 1) / Products::kUnitsOfWord * Products::kUnitsOfWord;
}

// Of units among so many blocks, where shared memory holds as many weights as go into so many bytes; less than zero
// kept: not even the rest goes in.
template <Cell cell, class Products, int held>
Division divide(int hidden, int blocks, bool is_across, int64_t most_bytes) {
  constexpr int units_at_once = kUnitsAtOnce<kGates<cell>>;
  Division by{};
  by.is_across = is_across;
  by.units = whole_words<Products>((hidden + blocks - 1) / blocks);
  by.turns = (by.units + units_at_once - 1) / units_at_once;
  by.fours = (hidden + 4 * kLanes - 1) / (4 * kLanes);
  by.is_ahead = true;
  by.is_ahead = bytes_without_weights<cell, Products, held>(by) <= most_bytes;
  const int64_t left = most_bytes - bytes_without_weights<cell, Products, held>(by);
  by.kept = left < 0
                ? -1
                : lesser(by.turns * by.fours - lesser(by.fours, held), static_cast<int>(left / kBytesOfFour<Products>));
  return by;
}

// Of a block's shared memory.
template <Cell cell, class Products, int held>
int64_t room_bytes(const Division& by) {
  return bytes_without_weights<cell, Products, held>(by) + by.kept * kBytesOfFour<Products>;
}

}  // namespace recurrences
}  // namespace gopt_runtime
