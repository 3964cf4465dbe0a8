#include "gopt_split.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "gopt_team.h"
#include "gopt_terms.h"

namespace gopt_runtime {
namespace {

struct Parts {
  uint32_t high, low;  // bits of floats that bfloat16 holds
  uint32_t again;      // high, where it is finite: what is multiplied for the second time
};
// Without branches: loops over it are vectorized.
Parts parts_of(float value) {
  const uint32_t bits = bits_of(value), high = rounded_to_upper(bits);
  const bool is_finite = (bits & kExponent) != kExponent, is_nan = (bits & ~0x80000000u) > kExponent;
  const uint32_t low = rounded_to_upper(bits_of(value - float_of(high)));
  return {is_nan ? bits | 0x00400000u : high, is_finite ? low : 0u, is_finite ? high : 0u};
}

// Elements [first, last) of a run.
template <class To, class Convert>
void split_run(Side side, const float* from, To* to, int64_t length, int64_t first, int64_t last, Convert convert) {
  To *high = to, *low = to + length, *again = to + 2 * length;
  if (side == Side::Right) std::swap(low, again);
#pragma omp simd
  for (int64_t i = first; i < last; i++) {
    const Parts parts = parts_of(from[i]);
    high[i] = convert(parts.high);
    low[i] = convert(parts.low);
    again[i] = convert(parts.again);
  }
}

constexpr int64_t kChunk = 4096;

}  // namespace

void split(Side side, const float* from, uint16_t* to, int64_t runs, int64_t length, int threads) {
  const int64_t chunks = (length + kChunk - 1) / kChunk;  // few long runs are divided
  share_each(runs * chunks, threads, [&](int64_t k, int) {
    const int64_t run = k / chunks, chunk = k % chunks;
    split_run(side, from + run * length, to + 3 * run * length, length, chunk * kChunk,
              std::min(length, (chunk + 1) * kChunk), [](uint32_t bits) { return static_cast<uint16_t>(bits >> 16); });
  });
}

std::vector<float> split(Side side, const float* from, int64_t runs, int64_t length) {
  std::vector<float> to(static_cast<size_t>(3 * runs * length));
  for (int64_t run = 0; run < runs; run++)
    split_run(side, from + run * length, to.data() + 3 * run * length, length, 0, length, float_of);
  return to;
}

}  // namespace gopt_runtime
