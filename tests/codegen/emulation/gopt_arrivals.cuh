// In place of the runtime's: barriers that count bytes, and stores into other blocks, which arrive in any order, and
// not before someone waits.
#pragma once

#include <map>

#include "gopt_copies.cuh"

namespace emulation {

struct Arrivals {
  int all = 0, missing = 0;
  int64_t bytes = 0;  // expected, less those that have come; below zero where those come first
  unsigned phase = 0;
};
struct Sent {
  char* to;
  std::array<float, 4> numbers;
  size_t bytes;
  Arrivals* at;
};
inline std::map<const char*, Arrivals> arrivals;
inline std::vector<Sent> on_their_way;

inline const bool forgets = (forget_barriers = [] { arrivals.clear(); }, true);

inline void end_phase_of(Arrivals& at) {
  if (at.missing == 0 && at.bytes == 0) at.missing = at.all, at.phase++, moves++;
}
inline void deliver_some() {
  constexpr int kAtOnce = 16;
  static std::minstd_rand draw(1);
  for (int i = 0; i < kAtOnce && !on_their_way.empty(); i++) {
    std::swap(on_their_way[draw() / kWarp % on_their_way.size()], on_their_way.back());
    const Sent sent = on_their_way.back();
    on_their_way.pop_back();
    std::memcpy(sent.to, sent.numbers.data(), sent.bytes);
    sent.at->bytes -= static_cast<int64_t>(sent.bytes), moves++;
    end_phase_of(*sent.at);
  }
}
// Of an address in the cluster's memory: those of other blocks lie behind the own one's.
inline char* in_cluster(unsigned address) {
  return address < kMemory ? own_block().memory + address : blocks[address / kMemory - 1].memory + address % kMemory;
}

}  // namespace emulation

namespace gopt_runtime {
namespace tiles {

inline void prepare(unsigned barrier, int count) {
  emulation::arrivals[own_memory() + barrier] = {.all = count, .missing = count};
}
inline void arrive_at(unsigned barrier) {
  emulation::Arrivals& at = emulation::arrivals.at(own_memory() + barrier);
  at.missing--;
  emulation::end_phase_of(at);
}
inline void expect_bytes(unsigned barrier, int bytes) {
  emulation::arrivals.at(own_memory() + barrier).bytes += bytes;
  arrive_at(barrier);
}
inline void wait_at(unsigned barrier, unsigned parity) {
  const emulation::Arrivals& at = emulation::arrivals.at(own_memory() + barrier);
  while (at.phase % 2 == parity) {
    emulation::deliver_some();
    emulation::Fiber::give_way();
  }
}
inline void wait_for_cluster_at(unsigned barrier, unsigned parity) { wait_at(barrier, parity); }
inline void meet_cluster() { emulation::cluster_barrier.arrive_and_wait(); }

inline unsigned address_in(unsigned block, const void* own) {
  return (block + 1) * emulation::kMemory + address_of(own);
}
inline void send(unsigned to, const std::array<float, 4>& numbers, size_t bytes, unsigned barrier) {
  expect_multiple(to, static_cast<int>(bytes));
  emulation::on_their_way.push_back(
      {emulation::in_cluster(to), numbers, bytes, &emulation::arrivals.at(emulation::in_cluster(barrier))});
}
inline void send(unsigned to, float a, unsigned barrier) { send(to, {a}, sizeof a, barrier); }
inline void send(unsigned to, float a, float b, unsigned barrier) { send(to, {a, b}, 2 * sizeof a, barrier); }
inline void send(unsigned to, const float4& four, unsigned barrier) {
  send(to, {four.x, four.y, four.z, four.w}, sizeof four, barrier);
}

}  // namespace tiles
}  // namespace gopt_runtime
