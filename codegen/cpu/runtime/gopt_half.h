// Numbers of 16 bits in memory: kernels compute with floats, and round what they store to the nearest, halves to even.
// IEEE's half has 11 significant bits, bfloat16 the upper half of a float. Assignments are of their bits: loops with
// assignments of whole structures are not vectorized.
#pragma once

#include <cstdint>
#include <cstring>

#include "gopt_bits.h"

struct gopt_half {
  uint16_t bits;

  gopt_half() = default;
  gopt_half(const gopt_half&) = default;
  gopt_half& operator=(const gopt_half& other) {
    bits = other.bits;
    return *this;
  }
  explicit gopt_half(float value) {
    const uint32_t given = gopt_bits_of(value), size = given & 0x7fffffffu;
    // Below 2^-14 the sum with 0.5 leaves just the bits that a half has there.
    const uint32_t small = gopt_bits_of(gopt_float_of(size) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
    const uint32_t large = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
    const uint32_t kept = size >= 0x47800000u ? large : size < 0x38800000u ? small : normal;
    bits = (uint16_t)(kept | ((given >> 16) & 0x8000u));
  }
  explicit gopt_half(double value) : gopt_half(gopt_odd(value)) {}
  explicit operator float() const {
    const uint32_t shifted = (uint32_t)(bits & 0x7fffu) << 13, exponent = shifted & 0x0f800000u;
    const uint32_t size = shifted + 0x38000000u;
    const float small = gopt_float_of(size + 0x00800000u) - gopt_float_of(0x38800000u);
    const uint32_t other = exponent == 0x0f800000u ? size + 0x38000000u : size;
    const uint32_t kept = exponent == 0 ? gopt_bits_of(small) : other;
    return gopt_float_of(kept | (uint32_t)(bits & 0x8000u) << 16);
  }

  // A double as a float that rounds on as the double would: what is cut off leaves an odd last bit.
  static inline float gopt_odd(double value) {
    const float near = (float)value;
    const double exact = near, size = value < 0 ? -value : value, near_size = exact < 0 ? -exact : exact;
    if (exact == value || value != value || near_size > 3.4028234663852886e38) return near;
    uint32_t given = gopt_bits_of(near);
    if (near_size > size) given -= 1;
    return gopt_float_of(given | 1u);
  }
};

struct gopt_bfloat16 {
  uint16_t bits;

  gopt_bfloat16() = default;
  gopt_bfloat16(const gopt_bfloat16&) = default;
  gopt_bfloat16& operator=(const gopt_bfloat16& other) {
    bits = other.bits;
    return *this;
  }
  explicit gopt_bfloat16(float value) {
    const uint32_t given = gopt_bits_of(value);
    const uint32_t rounded = given + 0x7fffu + ((given >> 16) & 1u);
    bits = (uint16_t)(value != value ? (given >> 16) | 0x40u : rounded >> 16);
  }
  explicit gopt_bfloat16(double value) : gopt_bfloat16(gopt_half::gopt_odd(value)) {}
  explicit operator float() const { return gopt_float_of((uint32_t)bits << 16); }
};
