// Recurrences on their way to the device: how many blocks and sequences a cluster has.
#pragma once

#include <stdexcept>

#include "gopt_recurrence.cuh"
#include "gopt_recurrence_halves.cuh"
#include "gopt_recurrence_shares.cuh"

namespace gopt_runtime {
namespace recurrences {

// Clusters of so many blocks that the device runs at once.
inline int clusters_at_once(const void* kernel, int blocks, int bytes) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.y = static_cast<unsigned>(blocks);
  attribute.val.clusterDim.x = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1, static_cast<unsigned>(blocks)), config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = static_cast<size_t>(bytes);
  config.attrs = &attribute, config.numAttrs = 1;
  int clusters = 0;
  const bool is_known = cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess;
  if (!is_known) (void)cudaGetLastError();  // which the next launch would be blamed for
  return is_known ? clusters : 0;
}

struct Choice {
  const void* kernel = nullptr;
  int rows = 0, blocks = 0, bytes = 0;
  Division by{};
  double cycles = 0;  // of a step, times the rounds in which clusters run
};

// What a step takes, about (H200): until states have come from other blocks, which in memory get into each other's way;
// each turn a chain of functions, and products of states, and of weights that are not in registers.
inline double cycles_of_step(const Call& call, const Division& by, int rows, bool is_of_tiles, int held,
                             int units_at_once, int blocks) {
  constexpr double kAlone = 200, kInCluster = 500, kOfBlock = 10, kAcross = 1750, kOfState = 0.04, kOfRead = 0.005,
                   kOfTurn = 500, kOfRow = 158, kOfProducts = 130, kOfTiles = 355, kFromShared = 500,
                   kFromMemory = 1200, kOfHalves = 0.3;
  const int all = by.turns * by.fours, from_memory = all - lesser(by.fours, held) - by.kept;
  const double share = by.turns > 1 ? 1.0 : static_cast<double>(by.units) / units_at_once,  // of the warps
      states = static_cast<double>(rows) * call.hidden,
               of_all = static_cast<double>(blocks) * call.directions * ((call.batch + rows - 1) / rows);
  const double until_states = by.is_across ? kAcross + states * (kOfState + kOfRead * of_all)
                              : blocks > 1 ? kInCluster + kOfBlock * blocks
                                           : kAlone;
  return until_states + by.turns * (kOfTurn + kOfRow * rows) +
         (is_of_tiles ? kOfTiles : kOfProducts * rows) * all * share +
         by.kept * kFromShared * (is_of_tiles ? kOfHalves : 1.0) + from_memory * kFromMemory;
}

// Takes the kernel for so many sequences a cluster where it is expected to be faster.
template <Cell cell, int most_held, class Products>
void consider(const Call& call, int most_bytes, int multiprocessors, Choice& best) {
  constexpr int units_at_once = kUnitsAtOnce<kGates<cell>>, held = lesser(most_held, Products::kMostHeld),
                rows = Products::rows;
  const void* const kernels[] = {reinterpret_cast<const void*>(&take_all_steps<cell, Products, held, false>),
                                 reinterpret_cast<const void*>(&take_all_steps<cell, Products, held, true>)};
  int most_blocks = 1;
  for (const void* kernel : kernels) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most_bytes);
    most_blocks = most_blocks_of_cluster(kernel, kThreads);
  }
  const int groups = call.directions * ((call.batch + rows - 1) / rows);
  const auto take = [&](int blocks, bool is_across) {
    const Division by = divide<cell, Products, held>(call.hidden, blocks, is_across, most_bytes);
    if (by.kept < 0 || (blocks - 1) * by.units >= call.hidden) return;  // each has to have units
    const void* const kernel = kernels[by.turns == 1];
    const auto bytes = static_cast<int>(room_bytes<cell, Products, held>(by));
    const int at_once = is_across     ? multiprocessors * blocks_of_multiprocessor(kernel, kThreads, bytes) / blocks
                        : blocks == 1 ? multiprocessors
                                      : clusters_at_once(kernel, blocks, bytes);
    if (at_once == 0 || (is_across && at_once < groups)) return;
    const int rounds = (groups + at_once - 1) / at_once;
    const double cycles = rounds * cycles_of_step(call, by, rows, Products::kIsOfTiles, held, units_at_once, blocks);
    if (!best.kernel || cycles < best.cycles) best = {kernel, rows, blocks, bytes, by, cycles};
  };
  for (int blocks = 1; blocks <= most_blocks; blocks *= 2) take(blocks, false);
  // Of four units or more, so that a block has something to do for what it gathers; all have to be there at once, as
  // they wait for each other, and read four states of the result at a time.
  const bool has_fours = call.hidden % 4 == 0 && reinterpret_cast<uintptr_t>(call.result) % sizeof(float4) == 0;
  if (call.result && has_fours)
    for (int wanted = 16; wanted <= call.hidden / 4; wanted *= 2) {
      const int units = whole_words<Products>((call.hidden + wanted - 1) / wanted);
      take((call.hidden + units - 1) / units, true);
    }
}

// What a step takes where each warp has a share of the depth, about (H200): until states have come, the more the more
// blocks read them; weights that are not in registers.
inline double cycles_by_shares(const Call& call, int eights) {
  constexpr double kAlways = 1900, kOfRound = 400, kOfKept = 1000, kOfEight = 600, kOfEightAndRound = 250;
  const int rounds = shares::rounds_of(call.hidden),
            kept = rounds > shares::kHeldPairs ? rounds - shares::kHeldPairs : 0;
  return kAlways + kOfRound * rounds + kOfKept * kept + (eights - 1) * (kOfEight + kOfEightAndRound * rounds);
}

// Whether the kernel whose warps have shares of the depth is launched: where it fits and is expected to be faster than
// `best`. `eights`: 0, there is none.
template <Cell cell, int eights>
bool launch_by_shares(Call call, void* exchange, const Choice& best, int multiprocessors, cudaStream_t stream) {
  if constexpr (eights > 0) {
    constexpr int held = shares::kHeldPairs;
    if (best.kernel && best.cycles <= cycles_by_shares(call, eights)) return false;
    const auto kernel = shares::rounds_of(call.hidden) > held
                            ? &shares::take_steps_by_shares<cell, eights, held, true>
                            : &shares::take_steps_by_shares<cell, eights, held, false>;
    const int room = shares::room_bytes<cell, eights, held>(call.hidden), blocks = shares::blocks_of(call.hidden),
              groups = shares::groups_of(call.directions, call.batch, eights);
    if (room > most_shared_bytes()) return false;
    cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize, room);
    const int at_once =
        multiprocessors * blocks_of_multiprocessor(reinterpret_cast<const void*>(kernel), kThreads, room);
    if (groups * blocks > at_once) return false;
    cudaMemsetAsync(exchange, 0xff, shares::bytes_of_exchange(call.directions, call.batch, call.hidden, eights),
                    stream);
    launch_with(kernel,
                {.grid = dim3(static_cast<unsigned>(groups), static_cast<unsigned>(blocks)),
                 .threads = dim3(kThreads),
                 .shared_bytes = static_cast<size_t>(room),
                 .is_all_at_once = true},
                stream, call, static_cast<unsigned*>(exchange));
    return true;
  }
  return false;
}

// Errors are found by cudaGetLastError after all launches. Throws where the device's shared memory is too little for
// the states. `may_round`: weights and states to halves; `eights`: then, of how many sequences times eight blocks of
// the whole device may take care, 0 for none.
template <Cell cell, int held, bool may_round, int eights = 0>
void launch(Call call, void* exchange, cudaStream_t stream) {
  if (call.batch == 0 || cudaPeekAtLastError() != cudaSuccess) return;  // what is asked below could hide an error
  const auto most_bytes = static_cast<int>(most_shared_bytes());
  const int multiprocessors = number_of_device(cudaDevAttrMultiProcessorCount);
  Choice choice;
  consider<cell, held, InFloats<cell, 1>>(call, most_bytes, multiprocessors, choice);
  if (call.batch > 1) consider<cell, held, InFloats<cell, 2>>(call, most_bytes, multiprocessors, choice);
  if (call.batch > 2) consider<cell, held, InFloats<cell, 4>>(call, most_bytes, multiprocessors, choice);
  if (call.batch > 4) consider<cell, held, InFloats<cell, 8>>(call, most_bytes, multiprocessors, choice);
  if constexpr (may_round) consider<cell, held, InHalves<cell>>(call, most_bytes, multiprocessors, choice);
  if (launch_by_shares<cell, eights>(call, exchange, choice, multiprocessors, stream)) return;
  if (!choice.kernel) throw std::runtime_error("a recurrence's states are too large for the device's shared memory");
  void* passed[] = {&call, &choice.by};
  const bool is_across = choice.by.is_across;
  if (is_across)
    cudaMemsetAsync(call.result, 0xff, sizeof(float) * call.steps * call.directions * call.batch * call.hidden, stream);
  const int groups = (call.batch + choice.rows - 1) / choice.rows;
  launch_dependent(choice.kernel,
                   {.grid = dim3(static_cast<unsigned>(call.directions * groups), static_cast<unsigned>(choice.blocks)),
                    .threads = dim3(kThreads),
                    .shared_bytes = static_cast<size_t>(choice.bytes),
                    .cluster = is_across ? 1 : choice.blocks,
                    .is_all_at_once = is_across},
                   passed, stream);
}

}  // namespace recurrences
}  // namespace gopt_runtime
