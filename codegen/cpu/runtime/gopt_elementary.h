// Logarithms, powers and angles of floats without branches and calls, so that loops over them vectorize; of doubles
// they are libm's. Relative errors are a few 1e-7, of powers one rounding, for all floats. What lies outside of a
// function's polynomial is chosen after it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "gopt_bits.h"

// With the sign of another.
static inline float gopt_signed(float x, float sign) {
  return gopt_float_of((gopt_bits_of(x) & 0x7fffffffu) | (gopt_bits_of(sign) & 0x80000000u));
}

static inline float gopt_log(float x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // x = 2^n m, sqrt(1/2) <= m < sqrt(2); what is below the normal numbers is taken 2^23 times.
  const float times = x < 1.17549435e-38f ? 8388608.0f : 1.0f, less = x < 1.17549435e-38f ? 23.0f : 0.0f;
  const uint32_t from = gopt_bits_of(x * times) - 0x3f3504f3u;
  const float n = (float)((int32_t)from >> 23) - less, f = gopt_float_of((from & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  // Terms side by side: a logarithm by itself, as of a row's sum, is waited for.
  const float square = f * f, fourth = square * square;
  const float low_terms = (0.333333109f - 0.250000163f * f) + (0.200022042f - 0.166676437f * f) * square,
              high_terms = (0.142178915f - 0.124112687f * f) + (0.119047121f - 0.116464344f * f) * square +
                           0.0667527189f * fourth;
  const float p = low_terms + high_terms * fourth;
  float rest = f * square * p;
  rest = rest - n * 2.12194440e-4f;
  rest = rest - 0.5f * square;
  const float log = (f + rest) + n * 0.693359375f;
  const float high = x < kInfinity ? log : x;
  const float low = x == 0.0f ? -kInfinity : std::numeric_limits<float>::quiet_NaN();
  return x > 0.0f ? high : low;
}

// ln(1 + x), also where the sum is rounded to 1: what the rounding left out is added. Where that is no number, the
// sum is 0, infinite or none.
static inline float gopt_log1p(float x) {
  const float sum = 1.0f + x, log = gopt_log(sum), rest = (x - (sum - 1.0f)) / sum;
  const float all = rest == rest ? log + rest : log;
  return sum == 1.0f ? x : all;
}

// x in quarter turns: how many (modulo 4), and what is beyond them in radians, at most pi / 4 either way.
struct gopt_turned {
  float rest;
  uint32_t quarters;
};
// 2 / pi is multiplied by x as far as the product counts (Payne and Hanek, 1983): where x is a whole number times 2^p,
// the digits of 2 / pi before the p-th are whole turns and left out. The products by its next 26 digits and by 26
// more are exact.
static inline gopt_turned gopt_turn(float x) {
  constexpr uint64_t kDigits[4] = {0x28be60db9391054au, 0x7f09d5f47d4d3770u, 0x36d8a5664f10e410u,
                                   0x7f9458eaf7aef158u};  // of 2 / pi / 4
  constexpr double kWhole = 6755399441055744.0;  // 1.5 2^52: its sum with a number has the whole one next to it
  constexpr uint64_t kOne = 0x3ff0000000000000u;
  const int32_t exponent = (int32_t)(gopt_bits_of(x) >> 23 & 255) - 150;
  const uint64_t p = (uint64_t)(exponent > 0 ? exponent : 0), within = p & 63;
  const bool is_far = p >= 64;
  const uint64_t a = is_far ? kDigits[1] : kDigits[0], b = is_far ? kDigits[2] : kDigits[1],
                 c = is_far ? kDigits[3] : kDigits[2];
  const uint64_t high = a << within | b >> 1 >> (63 - within), low = b << within | c >> 1 >> (63 - within);
  // Digits as numbers from 1 to 2, less 1.
  const double first = gopt_double_of(kOne | high >> 38 << 26) - 1.0,
               second = gopt_double_of(kOne | (high >> 12 & 0x3ffffffu) << 26) - 1.0,
               third = gopt_double_of(kOne | (high & 0xfffu) << 40 | low >> 24) - 1.0;
  const double m = (double)x * gopt_double_of(kOne - (p << 52));
  const double turns = m * (first * 4.0), whole = turns + kWhole;
  const double more = (turns - (whole - kWhole)) + m * (second * 0x1p-24), more_whole = more + kWhole;
  const double rest = (more - (more_whole - kWhole)) + m * (third * 0x1p-50);
  return {(float)(rest * 1.57079632679489662), (uint32_t)(gopt_bits_of(whole) + gopt_bits_of(more_whole))};
}
// Of at most pi / 4 either way.
static inline float gopt_near_sin(float x) {
  const float u = x * x;
  float p = 2.71819124e-6f;
  p = p * u - 1.98393198e-4f;
  p = p * u + 8.33332933e-3f;
  p = p * u - 0.166666666f;
  return gopt_signed(x + x * u * p, x);  // of -0, too
}
static inline float gopt_near_cos(float x) {
  const float u = x * x;
  float p = 2.44304996e-5f;
  p = p * u - 1.38872894e-3f;
  p = p * u + 0.041666645f;
  return 1.0f - 0.5f * u + u * u * p;
}
// The sine of a turned number and of so many quarter turns more.
static inline float gopt_sin_of(const gopt_turned& x, uint32_t quarters) {
  const uint32_t all = x.quarters + quarters;
  const float sine = gopt_near_sin(x.rest), cosine = gopt_near_cos(x.rest), chosen = all & 1 ? cosine : sine;
  return gopt_float_of(gopt_bits_of(chosen) ^ (all & 2) << 30);
}
static inline float gopt_sin(float x) { return gopt_sin_of(gopt_turn(x), 0); }
static inline float gopt_cos(float x) { return gopt_sin_of(gopt_turn(x), 1); }
static inline float gopt_tan(float x) {
  const gopt_turned turned = gopt_turn(x);
  return gopt_sin_of(turned, 0) / gopt_sin_of(turned, 1);
}

static inline float gopt_atan(float x) {
  // Beyond tan(3 pi / 8) the angle of -1 / x, beyond tan(pi / 8) that of (x - 1) / (x + 1).
  const float a = std::fabs(x);
  const bool is_large = a > 2.41421356f, is_middle = a > 0.414213562f;
  const float numerator = is_large    ? -1.0f
                          : is_middle ? a - 1.0f
                                      : a,
              denominator = is_large    ? a
                            : is_middle ? a + 1.0f
                                        : 1.0f,
              turned = is_large    ? 1.57079633f
                       : is_middle ? 0.785398163f
                                   : 0.0f;
  const float t = numerator / denominator, u = t * t;
  float p = -0.0607130411f;
  p = p * u + 0.105907733f;
  p = p * u - 0.142430642f;
  p = p * u + 0.199984421f;
  p = p * u - 0.333333146f;
  return gopt_signed(turned + (t + t * u * p), x);
}

// The angle whose sine is the root of u, at most 1 / 2; beyond, acos(x) = 2 asin(sqrt((1 - x) / 2)).
static inline float gopt_near_asin(float root, float u) {
  float p = 0.042147365f;
  p = p * u + 0.0241886496f;
  p = p * u + 0.0454691882f;
  p = p * u + 0.0749529794f;
  p = p * u + 0.166667529f;
  return root + root * u * p;
}
static inline float gopt_asin(float x) {
  const float a = std::fabs(x), half = 0.5f * (1.0f - a);
  const bool is_large = a > 0.5f;
  const float angle = gopt_near_asin(is_large ? std::sqrt(half) : a, is_large ? half : a * a);
  return gopt_signed(is_large ? 1.57079633f - 2.0f * angle : angle, x);
}
static inline float gopt_acos(float x) {
  const float a = std::fabs(x), half = 0.5f * (1.0f - a);
  const bool is_large = a > 0.5f;
  const float angle = gopt_near_asin(is_large ? std::sqrt(half) : x, is_large ? half : x * x);
  const float large = x < 0.0f ? 3.14159265f - 2.0f * angle : 2.0f * angle;
  return is_large ? large : 1.57079633f - angle;
}

// 2^(y log2|x|) in doubles, whose error a float does not show.
static inline float gopt_pow(float x, float y) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float a = std::fabs(x);
  // |x| = 2^n m, sqrt(1/2) <= m < sqrt(2); log2 m by t = (m - 1) / (m + 1).
  const uint64_t from = gopt_bits_of((double)a) - 0x3fe6a09e667f3bcdu;
  const double n = gopt_double_of(0x4330000000000000u | (((from >> 52) + 2048) & 4095)) - (0x1p52 + 2048);
  const double m = gopt_double_of((from & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu), t = (m - 1.0) / (m + 1.0),
               u = t * t;
  double p = 0.28289659557644836;
  p = p * u + 0.31990595273614114;
  p = p * u + 0.41220924596408404;
  p = p * u + 0.57707794243029142;
  p = p * u + 0.96179669411310986;
  p = p * u + 2.8853900817778499;
  const double logarithm = n + t * p, product = (double)y * logarithm;
  // Beyond what floats hold the power is 0 or infinite.
  const double high = product < 200.0 ? product : 200.0, within = high > -200.0 ? high : -200.0;
  const double sum = within + 6755399441055744.0, f = within - (sum - 6755399441055744.0);
  double q = 1.5310081143138152e-05;
  q = q * f + 0.00015469731977475548;
  q = q * f + 0.0013333450560384466;
  q = q * f + 0.0096180256029558368;
  q = q * f + 0.055504109412154529;
  q = q * f + 0.24022651213595231;
  q = q * f + 0.6931471805459305;
  q = q * f + 0.99999999995954825;
  float power = (float)gopt_double_of(gopt_bits_of(q) + (gopt_bits_of(sum) << 52));
  const float of_zero = y < 0.0f ? kInfinity : 0.0f, of_infinity = y < 0.0f ? 0.0f : kInfinity;
  power = a == 0.0f ? of_zero : power;
  power = a == kInfinity ? of_infinity : power;
  power = a == 1.0f ? 1.0f : power;
  // Of a negative number: with a sign where y is odd; none where y is not whole.
  const float half = 0.5f * y;
  const bool is_whole = std::nearbyint(y) == y, is_half = std::nearbyint(half) == half;
  const uint32_t sign = is_whole ? (is_half ? 0u : 0x80000000u) : 0u;
  power = gopt_float_of(gopt_bits_of(power) ^ (gopt_bits_of(x) & sign));
  const float negative = is_whole ? power : std::numeric_limits<float>::quiet_NaN();
  power = x < 0.0f ? (a < kInfinity ? negative : power) : power;
  power = x != x ? x : power;
  power = y != y ? y : power;
  power = y == 0.0f ? 1.0f : power;
  return x == 1.0f ? 1.0f : power;
}

#define GOPT_OF_DOUBLES(name, call) \
  static inline double gopt_##name(double x) { return call(x); }
GOPT_OF_DOUBLES(log, std::log)
GOPT_OF_DOUBLES(sin, std::sin)
GOPT_OF_DOUBLES(cos, std::cos)
GOPT_OF_DOUBLES(tan, std::tan)
GOPT_OF_DOUBLES(asin, std::asin)
GOPT_OF_DOUBLES(acos, std::acos)
GOPT_OF_DOUBLES(atan, std::atan)
#undef GOPT_OF_DOUBLES
static inline double gopt_pow(double x, double y) { return std::pow(x, y); }
