// Floats as sums of bfloat16 numbers: each term is the nearest to what those before it leave. One term has 8 bits, two
// have 16, three all 24 of a float.
#pragma once

#include <cstdint>
#include <cstring>

#include "gopt_post.h"

namespace gopt_runtime {

constexpr uint32_t kExponent = 0x7f800000u, kUpper = 0xffff0000u, kMagnitude = 0x7fffffffu;
// The least magnitude whose nearest bfloat16 is infinite.
constexpr uint32_t kRoundsToInfinity = 0x7f7f8000u;

inline uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// The nearest, halves to even, in the upper half of the bits; what would be rounded beyond the largest is cut off.
inline uint32_t rounded_to_upper(uint32_t bits) {
  const uint32_t nearest = (bits + 0x7fffu + ((bits >> 16) & 1u)) & kUpper;
  return (nearest & kExponent) == kExponent ? bits & kUpper : nearest;
}

// The nearest, halves away from zero, which takes two instructions of a vector; what is left of a half is the same.
inline uint32_t rounded_away(uint32_t bits) {
  const uint32_t nearest = (bits + 0x8000u) & kUpper;
  return (nearest & kExponent) == kExponent ? bits & kUpper : nearest;
}

// The nearest bfloat16, halves to even; what is no number stays so.
inline uint16_t half_of(float value) {
  const uint32_t bits = bits_of(value), nearest = bits + 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<uint16_t>(((bits & kMagnitude) > kExponent ? bits | 0x00400000u : nearest) >> 16);
}
inline float float_of_half(uint16_t half) { return float_of(static_cast<uint32_t>(half) << 16); }

// Elements of a tensor of either type.
inline float value_at(const void* data, Element element, int64_t i) {
  return element == Element::Float ? static_cast<const float*>(data)[i]
                                   : float_of_half(static_cast<const uint16_t*>(data)[i]);
}
inline const void* at_element(const void* data, Element element, int64_t i) {
  return static_cast<const char*>(data) + i * (element == Element::Float ? 4 : 2);
}

// bfloat16 numbers, by their bits. What is not finite is its first term, and the others are zero.
template <int terms>
inline void split_terms(float value, uint16_t (&to)[terms]) {
  const uint32_t bits = bits_of(value);
  const bool is_finite = (bits & kExponent) != kExponent, is_nan = (bits & kMagnitude) > kExponent;
  float left = value;
  for (int t = 0; t < terms; t++) {
    const uint32_t term = terms == 1 ? rounded_to_upper(bits_of(left)) : rounded_away(bits_of(left));
    left -= float_of(term);
    to[t] = static_cast<uint16_t>((is_finite ? term : t > 0 ? 0u : is_nan ? bits | 0x00400000u : bits) >> 16);
  }
}

}  // namespace gopt_runtime
