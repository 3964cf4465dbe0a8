// Numbers by their bits.
#pragma once

#include <cstdint>
#include <cstring>

template <class To, class From>
static inline To gopt_bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
static inline uint32_t gopt_bits_of(float value) { return gopt_bit_cast<uint32_t>(value); }
static inline uint64_t gopt_bits_of(double value) { return gopt_bit_cast<uint64_t>(value); }
static inline float gopt_float_of(uint32_t bits) { return gopt_bit_cast<float>(bits); }
static inline double gopt_double_of(uint64_t bits) { return gopt_bit_cast<double>(bits); }
