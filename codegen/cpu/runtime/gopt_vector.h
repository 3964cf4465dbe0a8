// The processor's vectors of floats, as loops of our own use them, and of bfloat16 numbers as these lie in memory.
#pragma once

#include <cstdint>
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

using Integers = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));
using HalfIntegers = int16_t __attribute__((vector_size(kLanes * sizeof(int16_t))));
using Words = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));
using HalfWords = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));

// What takes two bytes is bfloat16: the upper half of a float; what takes one is an integer.
template <class From>
inline Vector load_lanes(const From* p) {
  if constexpr (sizeof(From) == sizeof(float)) {
    return load(p);
  } else if constexpr (sizeof(From) == 1) {
    typedef From Bytes __attribute__((vector_size(kLanes)));
    Bytes bytes;
    std::memcpy(&bytes, p, sizeof bytes);
    // GCC takes them one by one where they become four times as wide at once.
    const HalfIntegers halves = __builtin_convertvector(bytes, HalfIntegers);
    return __builtin_convertvector(__builtin_convertvector(halves, Integers), Vector);
  } else {
    HalfWords halves;
    std::memcpy(&halves, p, sizeof halves);
    const Words words = __builtin_convertvector(halves, Words) << 16;
    Vector v;
    std::memcpy(&v, &words, sizeof v);
    return v;
  }
}

// Rounded to the nearest, halves to even; what takes one byte is an integer of its range.
template <class To>
inline void store_lanes_of(const Vector& v, To* p) {
  if constexpr (sizeof(To) == sizeof(float)) {
    std::memcpy(p, &v, sizeof v);
  } else if constexpr (sizeof(To) == 1) {
    typedef To Bytes __attribute__((vector_size(kLanes)));
    const Bytes bytes = __builtin_convertvector(__builtin_convertvector(v, Integers), Bytes);
    std::memcpy(p, &bytes, sizeof bytes);
  } else {
    Words words;
    std::memcpy(&words, &v, sizeof words);
    const Words nearest = (words + 0x7fffu + ((words >> 16) & 1u)) >> 16, nan = (words >> 16) | 0x40u;
    const HalfWords halves = __builtin_convertvector((words & 0x7fffffffu) > 0x7f800000u ? nan : nearest, HalfWords);
    std::memcpy(static_cast<void*>(p), &halves, sizeof halves);
  }
}

}  // namespace gopt_runtime
