// Scalar functions of generated kernels. The float forms of exp, tanh and erf have no branches and no calls, so that
// loops over them vectorize; their relative error is a few 1e-7. Everything else is libm's.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

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

static inline int64_t gopt_floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }
static inline int64_t gopt_ceil_div(int64_t a, int64_t b) { return -gopt_floor_div(-a, b); }
static inline int64_t gopt_clamp(int64_t i, int64_t bound) { return i < 0 ? 0 : i >= bound ? bound - 1 : i; }
// ONNX Div of integers truncates; by zero it is undefined, and 0 here.
static inline int64_t gopt_divide(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

// Truncates; out of range is the nearest, not-a-number 0.
static inline int64_t gopt_to_int(double x) {
  return x != x ? 0 : x >= 9.2233720368547758e18 ? INT64_MAX : x <= -9.2233720368547758e18 ? INT64_MIN : (int64_t)x;
}

static inline float gopt_power_of_two(int32_t n) {
  const int32_t bits = (n + 127) << 23;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

// x = n ln 2 + r, |r| <= ln 2 / 2: n is returned, r and (e^r - 1) / r are set.
static inline float gopt_split_exp(float x, float& r, float& quotient) {
  const float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.98329559e-4f;
  p = p * r + 1.39411085e-3f;
  p = p * r + 8.33341818e-3f;
  p = p * r + 4.16663533e-2f;
  p = p * r + 1.66666662e-1f;
  p = p * r + 0.5f;
  quotient = p * r + 1.0f;
  return n;
}

static inline float gopt_exp(float x) {
  const float inside = x > 88.72f ? 88.72f : x < -87.33f ? -87.33f : x;
  float r, q;
  const int32_t n = (int32_t)gopt_split_exp(inside, r, q);
  // Times 2^n by adding to the exponent, which stays that of a normal number: e^r is below 1 where n is 128, and not
  // where it is -126.
  const float power = q * r + 1.0f;
  uint32_t bits;
  memcpy(&bits, &power, sizeof bits);
  bits += (uint32_t)n << 23;
  float e;
  memcpy(&e, &bits, sizeof e);
  const float high = x > 88.72f ? std::numeric_limits<float>::infinity() : e;
  return x < -87.33f ? 0.0f : high;
}

static inline float gopt_tanh(float x) {
  const float a = 2.0f * (x < 0.0f ? -x : x);
  const float inside = a > 40.0f ? 40.0f : a;
  float r, q;
  const float n = gopt_split_exp(inside, r, q);
  const float s = gopt_power_of_two((int32_t)n);
  const float t = s * (q * r) + (s - 1.0f);  // e^2|x| - 1
  const float y = t / (t + 2.0f);
  return x < 0.0f ? -y : y;
}

static inline float gopt_erf(float x) {
  const float a = x < 0.0f ? -x : x, u = x * x;
  float small = 7.84725926e-5f;
  small = small * u - 8.00818903e-4f;
  small = small * u + 5.18809911e-3f;
  small = small * u - 2.68536918e-2f;
  small = small * u + 1.12835824e-1f;
  small = small * u - 3.76126260e-1f;
  small = small * u + 1.12837911f;
  // erfc(a) e^(a^2) as a polynomial in t, for a in [0.95, 4.2].
  const float b = a > 4.2f ? 4.2f : a, t = 1.0f / (1.0f + 0.5f * b);
  float tail = -2.29594003e-1f;
  tail = tail * t + 6.33151418e-1f;
  tail = tail * t - 6.03493809e-2f;
  tail = tail * t + 3.94414702e-1f;
  tail = tail * t + 2.60391478e-1f;
  tail = tail * t + 1.74278714e-3f;
  const float large = 1.0f - tail * gopt_exp(-b * b);
  const float y = x < 0.0f ? -large : large;
  return a < 1.0f ? small * x : x != x ? x : y;
}

#define GOPT_LIBM(name, call)                                    \
  static inline double gopt_##name(double x) { return call(x); } \
  static inline float gopt_##name(float x) { return call(x); }
static inline double gopt_exp(double x) { return std::exp(x); }
static inline double gopt_tanh(double x) { return std::tanh(x); }
static inline double gopt_erf(double x) { return std::erf(x); }
GOPT_LIBM(log, std::log)
GOPT_LIBM(sqrt, std::sqrt)
GOPT_LIBM(sin, std::sin)
GOPT_LIBM(cos, std::cos)
GOPT_LIBM(tan, std::tan)
GOPT_LIBM(asin, std::asin)
GOPT_LIBM(acos, std::acos)
GOPT_LIBM(atan, std::atan)
GOPT_LIBM(sinh, std::sinh)
GOPT_LIBM(cosh, std::cosh)
GOPT_LIBM(asinh, std::asinh)
GOPT_LIBM(acosh, std::acosh)
GOPT_LIBM(atanh, std::atanh)
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
static inline float gopt_pow(float x, float y) { return std::pow(x, y); }
static inline double gopt_pow(double x, double y) { return std::pow(x, y); }
static inline int64_t gopt_pow(int64_t x, int64_t y) { return gopt_to_int(std::pow((double)x, (double)y)); }
static inline float gopt_fmod(float x, float y) { return std::fmod(x, y); }
static inline double gopt_fmod(double x, double y) { return std::fmod(x, y); }
static inline int64_t gopt_fmod(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }
