// Winograd's transforms of single tiles, lanes over channels: of what a tile of the image reads, of weights, and back
// of what products give. A tile's result has `tile` x `tile` positions, and is of `tile` + 2 elements along both axes.
#pragma once

#include <cstdint>
#include <cstring>

#include "gopt_vector.h"

namespace gopt_runtime {

constexpr int kTaps = 3, kBeyond = kTaps - 1;  // what a tile reads beyond its extent
constexpr int kMostTile = 4, kSmallTile = 2, kMostWindow = kMostTile + kBeyond;

// Tiles of 4x4, by polynomials at 0, a, -a, b, -b and infinity. These points are oneDNN's, whose powers and sums are
// exact: the usual ones, 1 and 2, round off four times as much.
constexpr double kA = 5.0 / 8, kB = 3.0 / 2, kA2 = kA * kA, kB2 = kB * kB;

[[gnu::always_inline]] inline void transform(const Vector (&x)[6], Vector (&t)[6]) {
  constexpr float a = kA, b = kB, a2 = kA2, b2 = kB2, sum = kA2 + kB2, product = kA2 * kB2;
  const Vector near_even = x[4] - b2 * x[2], near_odd = x[3] - b2 * x[1];
  const Vector far_even = x[4] - a2 * x[2], far_odd = x[3] - a2 * x[1];
  t[0] = product * x[0] + (x[4] - sum * x[2]);
  t[1] = near_even + a * near_odd;
  t[2] = near_even - a * near_odd;
  t[3] = far_even + b * far_odd;
  t[4] = far_even - b * far_odd;
  t[5] = product * x[1] + (x[5] - sum * x[3]);
}
[[gnu::always_inline]] inline void transform_back(const Vector (&m)[6], Vector (&y)[4]) {
  constexpr float a = kA, b = kB, a2 = kA2, b2 = kB2, a3 = kA * kA2, b3 = kB * kB2;
  const Vector near_sum = m[1] + m[2], near_difference = m[1] - m[2];
  const Vector far_sum = m[3] + m[4], far_difference = m[3] - m[4];
  y[0] = m[0] + near_sum + far_sum;
  y[1] = a * near_difference + b * far_difference;
  y[2] = a2 * near_sum + b2 * far_sum;
  y[3] = a3 * near_difference + b3 * far_difference + m[5];
}
// The taps as a polynomial at each point, over the product of its distances from the others.
constexpr double kNearScale = 1 / (2 * kA2 * (kA2 - kB2)), kFarScale = 1 / (2 * kB2 * (kB2 - kA2));
constexpr double kWeightsOf4[][kTaps] = {{1 / (kA2 * kB2), 0, 0},
                                         {kNearScale, kA* kNearScale, kA2* kNearScale},
                                         {kNearScale, -kA* kNearScale, kA2* kNearScale},
                                         {kFarScale, kB* kFarScale, kB2* kFarScale},
                                         {kFarScale, -kB* kFarScale, kB2* kFarScale},
                                         {0, 0, 1}};

// Tiles of 2x2: at 0, 1, -1 and infinity.
[[gnu::always_inline]] inline void transform(const Vector (&x)[4], Vector (&t)[4]) {
  t[0] = x[0] - x[2];
  t[1] = x[2] + x[1];
  t[2] = x[2] - x[1];
  t[3] = x[3] - x[1];
}
[[gnu::always_inline]] inline void transform_back(const Vector (&m)[4], Vector (&y)[2]) {
  y[0] = m[0] + (m[1] + m[2]);
  y[1] = m[1] - m[2] + m[3];
}
constexpr double kWeightsOf2[][kTaps] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};

// Elements of a tile that lie `row` and `step` apart, to elements that lie `element` apart.
template <int tile, class T>
void transform_window(const T* from, int64_t row, int64_t step, float* to, int64_t element) {
  constexpr int window = tile + kBeyond;
  Vector half[window][window];
  for (int j = 0; j < window; j++) {
    Vector x[window], t[window];
    for (int i = 0; i < window; i++) x[i] = load_lanes(from + i * row + j * step);
    transform(x, t);
    for (int i = 0; i < window; i++) half[i][j] = t[i];
  }
  for (int i = 0; i < window; i++) {
    Vector t[window];
    transform(half[i], t);
    for (int j = 0; j < window; j++, to += element) std::memcpy(to, &t[j], sizeof(Vector));
  }
}

// Rows of the result, to which `bias` is added, one after another.
template <int tile>
void transform_products(const float* from, int64_t element, const Vector& bias, float* result) {
  constexpr int window = tile + kBeyond;
  Vector half[tile][window];
  for (int j = 0; j < window; j++) {
    Vector m[window], y[tile];
    for (int i = 0; i < window; i++) m[i] = load(from + (i * window + j) * element);
    transform_back(m, y);
    for (int i = 0; i < tile; i++) half[i][j] = y[i];
  }
  for (int i = 0; i < tile; i++) {
    Vector y[tile];
    transform_back(half[i], y);
    for (int j = 0; j < tile; j++, result += kLanes) {
      const Vector sum = y[j] + bias;
      std::memcpy(result, &sum, sizeof sum);
    }
  }
}

}  // namespace gopt_runtime
