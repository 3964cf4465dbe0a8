// In place of the runtime's: copies that are made at once or when they are waited for, and addresses in the own memory.
#pragma once

#include <map>

#include "device.h"

namespace gopt_runtime {
namespace tiles {

constexpr int kChunk = 16;

inline char* own_memory() { return emulation::own_block().memory; }
inline unsigned address_of(const void* shared) {
  return static_cast<unsigned>(static_cast<const char*>(shared) - own_memory());
}

// The device faults where an address is no multiple.
inline void expect_multiple(uintptr_t address, int of) {
  if (address % static_cast<uintptr_t>(of) == 0) return;
  std::printf("an address of %d bytes begins %d behind\n", of, static_cast<int>(address % static_cast<uintptr_t>(of)));
  std::fflush(stdout);
  std::_Exit(1);
}

template <int kBytes>
inline void copy_piece(unsigned to, const void* from, bool is_there) {
  expect_multiple(to, kBytes);
  expect_multiple(reinterpret_cast<uintptr_t>(from), kBytes);
  emulation::Fiber::copies().ask(own_memory() + to, is_there ? from : nullptr, kBytes);
}
inline void copy_chunk(unsigned to, const void* from, bool is_there) { copy_piece<kChunk>(to, from, is_there); }
inline void end_stage() { emulation::Fiber::copies().end_stage(); }
template <int kPending>
inline void wait_for_stages() {
  emulation::Fiber::copies().wait(kPending);
}

template <int kPending>
inline void wait_for_own_stages() {
  wait_for_stages<kPending>();
}

inline void write_for_all(float* at, float number) { *at = number; }
inline void write_for_all(uint64_t* at, uint64_t number) { *at = number; }
// That something else is there than was is a move.
template <class T>
void note_what_is_there(const T* at) {
  static std::map<const T*, T> last;
  if (std::memcmp(&last[at], at, sizeof(T)) != 0) last[at] = *at, emulation::moves++;
}
// Others go on before.
inline float4 read_anew(const float* at) {
  emulation::Fiber::give_way();
  expect_multiple(reinterpret_cast<uintptr_t>(at), sizeof(float4));
  const float4 four{at[0], at[1], at[2], at[3]};
  for (int i = 0; i < 4; i++) note_what_is_there(at + i);
  return four;
}
inline void read_anew(const uint64_t* at, uint64_t& first, uint64_t& second) {
  emulation::Fiber::give_way();
  expect_multiple(reinterpret_cast<uintptr_t>(at), 16);
  first = at[0], second = at[1];
  note_what_is_there(at), note_what_is_there(at + 1);
}

}  // namespace tiles
}  // namespace gopt_runtime
