// Kernels timed one by one, each in the state of memory that it finds in a model: what it reads was just written, its
// weights were last read a whole run ago.
#pragma once

#include <omp.h>

#include <cstdint>
#include <memory>

#include "gopt_memory.h"
#include "gopt_threads.h"

namespace gopt_runtime {

// Milliseconds of the kernels whose entry is not negative; where it is above zero, weights come from memory.
struct OneByOne {
  double* milliseconds;
  double last = 0;
  bool wants(int kernel) const { return milliseconds[kernel] >= 0; }
  bool is_from_memory(int kernel) const { return milliseconds[kernel] > 0; }
  void start() { last = now_ms(); }
  void operator()(int kernel) { milliseconds[kernel] = now_ms() - last; }
};

// In [-0.5, 0.5), by a hash of the place and of how often this was called: a processor that has seen the signs before,
// or that they alternate, guesses each branch on them, which in a model it cannot. (The mixing steps are those that end
// MurmurHash3, Appleby.)
inline void refresh_floats(char* at, int64_t bytes, int threads) {
  static uint32_t calls = 0;
  float* values = reinterpret_cast<float*>(at);
  const int64_t count = bytes / 4;
  const uint32_t seed = ++calls * 0x9e3779b9u;
#pragma omp parallel for simd num_threads(thread_count(threads))
  for (int64_t i = 0; i < count; i++) {
    uint32_t mixed = static_cast<uint32_t>(i) + seed;
    mixed = (mixed ^ (mixed >> 16)) * 0x85ebca6bu;
    mixed = (mixed ^ (mixed >> 13)) * 0xc2b2ae35u;
    mixed ^= mixed >> 16;
    values[i] = static_cast<float>(static_cast<int32_t>(mixed >> 8)) * (1.0f / 16777216) - 0.5f;
  }
}

// Zero: an index that is valid everywhere.
inline void refresh_bytes(char* at, int64_t bytes, int threads) {
#pragma omp parallel for num_threads(thread_count(threads))
  for (int64_t i = 0; i < bytes; i++) at[i] = 0;
}

// Each thread reads more than its own cache holds.
inline void forget_weights(int threads) {
  static const int64_t share = second_cache_bytes() / 4 * 5;
  static const Block block(static_cast<size_t>(share) * static_cast<size_t>(thread_count(threads)));
  int64_t sum = 0;
#pragma omp parallel num_threads(thread_count(threads)) reduction(+ : sum)
  {
    const char* own = block.data() + omp_get_thread_num() * share;
    for (int64_t i = 0; i < share; i += 64) sum += own[i];
  }
  static volatile int64_t kept;
  kept = sum;
}

}  // namespace gopt_runtime
