// The processor's vectors of floats, as loops of our own use them.
#pragma once

#include <cstring>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace gopt_runtime {

#if defined(__AVX512F__)
constexpr int kLanes = 16, kRegisters = 28;  // for sums; the rest holds what is multiplied
#elif defined(__AVX__)
constexpr int kLanes = 8, kRegisters = 12;
#else
constexpr int kLanes = 4, kRegisters = 12;
#endif

using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));

inline Vector load(const float* p) {
  Vector v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

}  // namespace gopt_runtime
