// Scalar functions of generated kernels. The float forms of exp, tanh and erf have no branches and no calls, so that
// loops over them vectorize; their relative error is a few 1e-7. So are those of gopt_elementary.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "gopt_bits.h"
#include "gopt_elementary.h"

// NaN wins, as in ONNX Runtime and numpy. Two choices, one after the other: loops with `or` between comparisons are not
// vectorized, but branch on each element.
template <class T>
static inline T gopt_max(T a, T b) {
  const T larger = b > a ? b : a;
  return b != b ? b : larger;
}
template <class T>
static inline T gopt_min(T a, T b) {
  const T smaller = b < a ? b : a;
  return b != b ? b : smaller;
}

// Zero, which no compiler knows (without optimization at link time, which emitted code is not built with).
__attribute__((visibility("hidden"))) inline uint32_t gopt_zero_bits = 0;

// A number as it is rounded: what is made of it is not one instruction with what made it, though the compiler may make
// one of a product and a sum (of vectors, too, through a barrier as GCC has it). Loops over it vectorize.
template <class T>
static inline T gopt_rounded(T x) {
  typename std::conditional<sizeof(T) == 4, uint32_t, uint64_t>::type bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits ^= gopt_zero_bits;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}
template <class T>
static inline T gopt_sum(T a, T b) {
  return a + b;
}
template <class T>
static inline T gopt_difference(T a, T b) {
  return a - b;
}

// Lanes of a short reduction, a power of two and four at least: all from one number, and together by fours.
template <int kLanes>
static inline void gopt_fill(float (&lanes)[kLanes], float value) {
  for (float& own : lanes) own = value;
}
template <int kLanes, class Combine>
static inline float gopt_fold(const float (&lanes)[kLanes], Combine combine) {
  typedef float Four __attribute__((vector_size(16)));
  Four all;
  std::memcpy(&all, lanes, sizeof all);
  for (int lane = 4; lane < kLanes; lane += 4) {
    Four next;
    std::memcpy(&next, lanes + lane, sizeof next);
    all = combine(all, next);
  }
  return combine(combine(all[0], all[2]), combine(all[1], all[3]));
}
template <int kLanes>
static inline bool gopt_has_any(const int (&lanes)[kLanes]) {
  int any = 0;
  for (const int own : lanes) any |= own;
  return any != 0;
}

// Where a loop begins that reads under a condition, as a number that the compiler does not know: GCC (12, with
// AVX512VL) makes of a masked load whose mask it knows one of the whole vector, which may reach beyond the buffer and
// its page.
static inline int64_t gopt_first(int64_t first) {
#if defined(__AVX512VL__) && defined(__GNUC__) && !defined(__clang__)
  asm("" : "+r"(first));
#endif
  return first;
}

static inline int64_t gopt_floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }
static inline int64_t gopt_ceil_div(int64_t a, int64_t b) { return -gopt_floor_div(-a, b); }
static inline int64_t gopt_clamp(int64_t i, int64_t bound) { return i < 0 ? 0 : i >= bound ? bound - 1 : i; }
// ONNX Div of integers truncates; by zero it is undefined, and 0 here.
static inline int64_t gopt_divide(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

// x / divisor, rounded as a division is (Markstein, 1990) but for x below 2^-100, whose last digit may differ, where
// the reciprocal is the rounded one: the product of both may fall below a whole number that the quotient is. Where that
// is infinite, no number or a zero, whose sign it has, so is the product.
static inline float gopt_quotient(float x, float divisor, float reciprocal) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  const float product = x * reciprocal,
              quotient = __builtin_fmaf(__builtin_fmaf(-product, divisor, x), reciprocal, product);
  return quotient == quotient && product != 0 ? quotient : product;
#else
  (void)reciprocal;
  return x / divisor;
#endif
}

// Truncates; out of range is the nearest, not-a-number 0.
static inline int64_t gopt_to_int(double x) {
  return x != x ? 0 : x >= 9.2233720368547758e18 ? INT64_MAX : x <= -9.2233720368547758e18 ? INT64_MIN : (int64_t)x;
}
// Likewise to an unsigned number, as the signed one of the same bits; what is below 0 as a signed one.
static inline int64_t gopt_to_unsigned(double x) {
  constexpr double kHalf = 9.2233720368547758e18;
  return x < kHalf ? gopt_to_int(x) : x < 2 * kHalf ? (int64_t)(uint64_t)x : x != x ? 0 : -1;
}

// Bounds as numbers that the compiler does not know: GCC (12, with AVX-512) makes a comparison and a choice of each
// maximum and minimum with a constant, and one instruction of those with other numbers. Integers, which no store of
// floats changes: they are loaded before loops.
struct gopt_bounds {
  uint32_t one = 0x3f800000, tanh = 0x41140000, erf = 0x407d70a4;  // 1, 9.25, 3.96
};
#if defined(__GNUC__)
__attribute__((visibility("hidden")))
#endif
inline gopt_bounds gopt_bound;

// NaN stays.
static inline float gopt_within(float x, uint32_t bits) {
  const float bound = gopt_float_of(bits);
  const float low = x < -bound ? -bound : x;
  return low > bound ? bound : low;
}

// Of numbers beyond its range, and of none, the polynomial is anything: what is returned is chosen after it.
static inline float gopt_exp(float x) {
  // x = n ln 2 + r, |r| <= ln 2 / 2; n are the last bits of the sum.
  const float sum = x * 1.44269504f + 12582912.0f, n = sum - 12582912.0f;
  float r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 8.31250101e-3f;
  p = p * r + 4.18903306e-2f;
  p = p * r + 1.66671157e-1f;
  p = p * r + 4.99992311e-1f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // Times 2^n by adding to the exponent, which stays that of a normal number: e^r is below 1 where n is 128, and not
  // where it is -126.
  const float e = gopt_float_of(gopt_bits_of(p) + (gopt_bits_of(sum) << 23));
  const float high = x <= 88.7228317f ? e : x + std::numeric_limits<float>::infinity();
  return x < -87.33f ? 0.0f : high;
}

// tanh and erf are x P(x^2) / Q(x^2), fitted to the least relative error; where they are 1, the quotient is no less.
static inline float gopt_tanh(float x) {
  const float a = gopt_within(x, gopt_bound.tanh), u = a * a;
  float p = 1.35333131e-8f, q = 7.8493099e-7f;
  p = p * u + 2.0736863e-5f;
  p = p * u + 3.50331818e-3f;
  p = p * u + 1.33875266e-1f;
  p = p * u + 1.0f;
  q = q * u + 3.29829869e-4f;
  q = q * u + 2.59063635e-2f;
  q = q * u + 4.67208445e-1f;
  q = q * u + 1.0f;
  return gopt_within(a * p / q, gopt_bound.one);
}

static inline float gopt_erf(float x) {
  const float a = gopt_within(x, gopt_bound.erf), u = a * a;
  float p = 2.10826374e-6f, q = 3.87317305e-5f;
  p = p * u + 2.8567441e-4f;
  p = p * u + 3.673953e-3f;
  p = p * u + 5.24797738e-2f;
  p = p * u + 1.87898353e-1f;
  p = p * u + 1.12837911f;
  q = q * u + 1.14550465e-3f;
  q = q * u + 1.47849387e-2f;
  q = q * u + 1.13129213e-1f;
  q = q * u + 4.99853462e-1f;
  q = q * u + 1.0f;
  return gopt_within(a * p / q, gopt_bound.one);
}

#define GOPT_LIBM(name, call)                                    \
  static inline double gopt_##name(double x) { return call(x); } \
  static inline float gopt_##name(float x) { return call(x); }
static inline double gopt_exp(double x) { return std::exp(x); }
static inline double gopt_tanh(double x) { return std::tanh(x); }
static inline double gopt_erf(double x) { return std::erf(x); }
GOPT_LIBM(sinh, std::sinh)
GOPT_LIBM(cosh, std::cosh)
GOPT_LIBM(asinh, std::asinh)
GOPT_LIBM(acosh, std::acosh)
GOPT_LIBM(atanh, std::atanh)
GOPT_LIBM(sqrt, std::sqrt)
GOPT_LIBM(floor, std::floor)
GOPT_LIBM(ceil, std::ceil)
GOPT_LIBM(round, std::nearbyint)
GOPT_LIBM(trunc, std::trunc)
#undef GOPT_LIBM
static inline float gopt_narrow(float x) { return x; }
static inline double gopt_narrow(double x) { return (float)x; }
static inline int gopt_isnan(float x) { return x != x; }
static inline int gopt_isnan(double x) { return x != x; }
static inline int gopt_isnan(int64_t) { return 0; }
static inline int64_t gopt_pow(int64_t x, int64_t y) { return gopt_to_int(std::pow((double)x, (double)y)); }
static inline float gopt_fmod(float x, float y) { return std::fmod(x, y); }
static inline double gopt_fmod(double x, double y) { return std::fmod(x, y); }
static inline int64_t gopt_fmod(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }
