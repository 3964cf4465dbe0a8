// Convolutions by Winograd's algorithm against float64: extents that fill no tile, tiles of both extents, channels that
// fill no block or panel, borders on some sides, several images, groups of tiles, threads that share a group and that
// do not, what is done before a result is stored, and what lies around it; large, tiny and no values; in floats and in
// bfloat16.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "floats_on_lines.h"
#include "gopt_terms.h"
#include "gopt_vector.h"
#include "gopt_winograd.h"

namespace gopt_runtime {
namespace {

// The least block that the processor takes.
constexpr int64_t kBlock = kLanes > 8 ? kLanes : 8;

struct Case {
  const char* name;
  int64_t batch, in, out, height, width;
  int64_t top = 1, left = 1, bottom = 1, right = 1;  // border
  int64_t block = kBlock;
  int threads = 1;
  float scale = 1;  // of the image
  struct {
    int64_t all = 1, window = 1, step = 1, apart = 1, before = 0, after = 0;
  } planes;  // of a volume
};
std::ostream& operator<<(std::ostream& os, const Case& c) { return os << c.name; }

const Case kCases[] = {
    {"Usual", 1, 32, 32, 16, 16},
    {"TwoThreads", 1, 32, 32, 28, 28, 1, 1, 1, 1, kBlock, 2},
    {"OddExtents", 2, 24, 40, 23, 17, 1, 1, 1, 1, kBlock, 2},
    {"SmallImages", 1, 48, 40, 7, 7, 1, 1, 1, 1, kBlock, 2},
    {"SmallImagesOfOneThread", 1, 48, 40, 7, 7},
    {"OnePosition", 1, 16, 16, 1, 1},
    {"OneRow", 1, 16, 24, 1, 37, 1, 1, 1, 1, kBlock, 2},
    {"OneColumn", 3, 16, 24, 37, 1},
    {"ManySmallImages", 9, 16, 24, 3, 5, 1, 1, 1, 1, kBlock, 2},
    {"BlocksNotFilled", 2, 19, 21, 13, 14, 1, 1, 1, 1, kBlock, 2},
    {"LastPanelOfOneVector", 1, 16, 72, 13, 14, 1, 1, 1, 1, kBlock, 2},
    {"NoBorder", 2, 16, 24, 15, 14, 0, 0, 0, 0, kBlock, 2},
    {"BorderOnSomeSides", 1, 16, 24, 15, 14, 0, 1, 2, 0, kBlock, 2},
    {"WideBorder", 1, 16, 24, 6, 5, 2, 7, 9, 2},
    {"Deep", 1, 520, 40, 14, 15, 1, 1, 1, 1, kBlock, 2},
    {"GroupsOfTiles", 1, 256, 24, 40, 41, 1, 1, 1, 1, kBlock, 2},
    {"GroupsShared", 1, 1040, 40, 16, 20, 1, 1, 1, 1, kBlock, 2},
    {"MoreThreadsThanTiles", 1, 16, 48, 7, 6, 1, 1, 1, 1, kBlock, 7},
    {"BlocksOf16", 2, 24, 40, 14, 9, 1, 1, 1, 1, 16, 2},
    {"BlocksOf16NotFilled", 1, 17, 35, 22, 21, 1, 1, 1, 1, 16, 1},
    {"Large", 1, 64, 32, 16, 16, 1, 1, 1, 1, kBlock, 1, 1e33f},
    {"Tiny", 1, 64, 32, 16, 16, 1, 1, 1, 1, kBlock, 1, 1e-33f},
    {"Zero", 1, 64, 32, 16, 16, 1, 1, 1, 1, kBlock, 2, 0.0f},
    {"Planes", 1, 24, 32, 9, 11, 1, 1, 1, 1, kBlock, 2, 1, {5, 1}},
    {"Volume", 2, 16, 24, 9, 14, 1, 1, 1, 1, kBlock, 2, 1, {4, 3, 1, 1, 1, 1}},
    {"VolumeNotFilled", 1, 19, 21, 7, 6, 1, 1, 1, 1, kBlock, 1, 1, {3, 3, 1, 1, 1, 1}},
    {"VolumeInSteps", 1, 16, 40, 8, 8, 1, 1, 1, 1, kBlock, 2, 1, {7, 3, 2, 1, 1, 1}},
    {"VolumeDilated", 1, 16, 24, 8, 5, 1, 0, 1, 0, kBlock, 2, 1, {6, 2, 1, 3, 0, 2}},
    {"VolumeBefore", 1, 16, 24, 4, 4, 1, 1, 1, 1, kBlock, 1, 1, {2, 5, 1, 1, 4, 3}},
};

PlanarShape shape_of(const Case& c) {
  PlanarShape s;
  s.batch = c.batch, s.in = c.in, s.out = c.out;
  s.src[1] = c.height, s.src[2] = c.width, s.kernel[1] = s.kernel[2] = 3, s.pads[1] = c.top, s.pads[2] = c.left;
  s.src[0] = c.planes.all, s.kernel[0] = c.planes.window, s.strides[0] = c.planes.step;
  s.dilations[0] = c.planes.apart, s.pads[0] = c.planes.before;
  const int64_t reach = (c.planes.window - 1) * c.planes.apart + 1;
  s.dst[0] = (c.planes.all + c.planes.before + c.planes.after - reach) / c.planes.step + 1;
  s.dst[1] = c.height + c.top + c.bottom - 2, s.dst[2] = c.width + c.left + c.right - 2;
  return s;
}
int64_t filled(const Case& c, int64_t channels) { return (channels + c.block - 1) / c.block * c.block; }
int64_t place(const Case& c, int64_t channels, int64_t positions, int64_t image, int64_t channel, int64_t position) {
  return image * filled(c, channels) * positions + (channel / c.block * positions + position) * c.block +
         channel % c.block;
}

// A result in blocks of channels, zeros where these are not filled; beside it the sums of magnitudes.
struct Exact {
  std::vector<double> values, magnitudes;
};
Exact exact(const Case& c, const PlanarShape& s, const float* x, const std::vector<float>& w) {
  const int64_t from = area(s.src), to = area(s.dst), height = s.src[1], width = s.src[2], taps = 9 * s.kernel[0];
  Exact e;
  e.values.resize(static_cast<size_t>(s.batch * filled(c, s.out) * to));
  e.magnitudes = e.values;
  for (int64_t n = 0; n < s.batch; n++)
    for (int64_t p = 0; p < to; p++)
      for (int64_t tap = 0; tap < taps; tap++) {
        const int64_t h = p / s.dst[2] % s.dst[1] + tap % 9 / 3 - s.pads[1], v = p % s.dst[2] + tap % 3 - s.pads[2];
        const int64_t plane = p / s.dst[2] / s.dst[1] * s.strides[0] + tap / 9 * s.dilations[0] - s.pads[0];
        if (h < 0 || h >= height || v < 0 || v >= width || plane < 0 || plane >= s.src[0]) continue;
        for (int64_t o = 0; o < s.out; o++)
          for (int64_t i = 0; i < s.in; i++) {
            const double term = static_cast<double>(x[place(c, s.in, from, n, i, (plane * height + h) * width + v)]) *
                                w[static_cast<size_t>((o * s.in + i) * taps + tap)];
            const auto at = static_cast<size_t>(place(c, s.out, to, n, o, p));
            e.values[at] += term, e.magnitudes[at] += std::fabs(term);
          }
      }
  return e;
}

class Winograd : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, Winograd, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// A number as it is stored, what it is, and what is lost of it.
template <class T>
T stored(float value) {
  if constexpr (std::is_same_v<T, float>) return value;
  return half_of(value);
}
double value_of(float number) { return number; }
double value_of(uint16_t half) { return float_of_half(half); }
template <class T>
constexpr double kLost = std::is_same_v<T, float> ? 0 : 0x1p-8;

template <class T>
void expect_agreement(const Case& c) {
  const PlanarShape s = shape_of(c);
  ASSERT_TRUE(WinogradConvolution::takes(s, c.block));
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const int64_t from = area(s.src), to = area(s.dst);
  OnLines<T> x(s.batch * filled(c, s.in) * from, 0), factors(s.out, 0);
  Floats bias(s.out, 0), image(x.size, 0);
  std::vector<float> w(static_cast<size_t>(s.out * s.in * 9 * s.kernel[0]));
  for (float& v : w) v = normal(random);
  for (int64_t i = 0; i < s.out; i++)
    bias.data[i] = c.scale * normal(random), factors.data[i] = stored<T>(normal(random));
  for (int64_t n = 0; n < s.batch; n++)
    for (int64_t i = 0; i < s.in; i++)
      for (int64_t p = 0; p < from; p++) x.data[place(c, s.in, from, n, i, p)] = stored<T>(c.scale * normal(random));
  for (int64_t i = 0; i < x.size; i++) image.data[i] = static_cast<float>(value_of(x.data[i]));
  const Exact sums = exact(c, s, image.data, w);
  const double most = *std::max_element(sums.magnitudes.begin(), sums.magnitudes.end());

  for (int which = 0; which < 7; which++) {
    const Element element = std::is_same_v<T, float> ? Element::Float : Element::BFloat16;
    std::vector<Post> posts;
    if (which == 1) posts = {{PostKind::Relu}};
    if (which == 2) posts = {{PostKind::Add}, {PostKind::Relu}};
    if (which == 3) posts = {{PostKind::Sum}, {PostKind::Relu}};
    if (which == 4) posts = {{PostKind::Sum}, {PostKind::Clip, -1.0f, 2.0f}};
    if (which == 5) posts = {{PostKind::Relu, 0.1f}, {PostKind::Add, 0, 0, nullptr, {1, s.out, 1, 1}, element}};
    if (which == 6) posts = {{PostKind::Add}, {PostKind::Logistic}};
    OnLines<T> added(s.batch * filled(c, s.out) * to, 0), made(added.size, stored<T>(0.25f));
    for (int64_t i = 0; i < added.size; i++) added.data[i] = stored<T>(c.scale * normal(random));
    if (which == 3 || which == 4) std::copy(added.data, added.data + added.size, made.data);

    WinogradConvolution convolution(s, c.block, posts, c.threads, element);
    if (which == 2 || which == 6) convolution.bind_post(0, added.data);
    if (which == 5) convolution.bind_post(1, factors.data);
    Floats packed(static_cast<int64_t>(convolution.packed_floats()), NAN);
    convolution.pack(w.data(), packed.data);
    Floats scratch(static_cast<int64_t>(convolution.scratch_floats()), NAN);
    convolution.run(x.data, packed.data, which == 0 ? nullptr : bias.data, made.data, scratch.data);

    for (int64_t n = 0; n < s.batch; n++)
      for (int64_t o = 0; o < filled(c, s.out); o++)
        for (int64_t p = 0; p < to; p++) {
          const int64_t at = place(c, s.out, to, n, o, p);
          if (o >= s.out) {
            ASSERT_EQ(made.data[at], T(0)) << "what fills a block";
            continue;
          }
          double sum = sums.values[static_cast<size_t>(at)] + (which == 0 ? 0 : bias.data[o]);
          if (which == 2 || which == 3 || which == 4 || which == 6) sum += value_of(added.data[at]);
          const double magnitude = most + std::fabs(sum);
          if (which == 1 || which == 2 || which == 3) sum = std::max(sum, 0.0);
          if (which == 4) sum = std::clamp(sum, -1.0, 2.0);
          if (which == 5) sum = (sum < 0 ? 0.1f * sum : sum) + value_of(factors.data[o]);
          if (which == 6) sum = 1 / (1 + std::exp(-sum));
          const double others = which > 3 ? 2e-6 : 0;  // of activations
          ASSERT_NEAR(value_of(made.data[at]), sum, 1e-6 * magnitude + others + kLost<T> * std::fabs(sum))
              << "image " << n << " position " << p << " " << o;
        }
    EXPECT_TRUE(made.is_intact_behind());
  }
}

TEST_P(Winograd, AgreesWithFloat64) { expect_agreement<float>(GetParam()); }
TEST_P(Winograd, OfHalvesAgreesWithFloat64) { expect_agreement<uint16_t>(GetParam()); }

// Infinity and NaN reach the windows that hold them, and nothing beyond their tiles.
TEST(WinogradFloats, WhatIsNotFiniteStaysInItsTiles) {
  const Case c{"", 1, 16, 16, 20, 20};
  const PlanarShape s = shape_of(c);
  ASSERT_TRUE(WinogradConvolution::takes(s, c.block));
  WinogradConvolution convolution(s, c.block, {{PostKind::Relu}}, 1);
  const std::vector<float> w(16 * 16 * 9, 1.0f);
  Floats packed(static_cast<int64_t>(convolution.packed_floats()), NAN);
  Floats scratch(static_cast<int64_t>(convolution.scratch_floats()), NAN);
  convolution.pack(w.data(), packed.data);
  for (const float odd : {NAN, INFINITY}) {
    constexpr int64_t kAt = 10, kFirst = 8, kLast = 11;  // kAt is read by the tiles of 8 to 11 alone
    Floats x(16 * 400, 1.0f), made(16 * 400, 0);
    x.data[place(c, 16, 400, 0, 5, kAt * 20 + kAt)] = odd;
    convolution.run(x.data, packed.data, nullptr, made.data, scratch.data);
    for (int64_t h = 0; h < 20; h++)
      for (int64_t v = 0; v < 20; v++) {
        const bool is_window = std::abs(h - kAt) <= 1 && std::abs(v - kAt) <= 1;
        const bool is_near = h >= kFirst && h <= kLast && v >= kFirst && v <= kLast;
        const float got = made.data[place(c, 16, 400, 0, 3, h * 20 + v)];
        EXPECT_TRUE(!is_window || std::isnan(got)) << h << " " << v;
        EXPECT_TRUE(is_near || std::isfinite(got)) << h << " " << v;
      }
  }
}

// No more of the largest result than 1e-5 at any depth.
TEST(WinogradError, StaysSmallOverManyChannels) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (const int64_t extent : {7, 20})
    for (const int64_t channels : {64, 256, 512}) {
      const Case c{"", 1, channels, 32, extent, extent};
      const PlanarShape s = shape_of(c);
      WinogradConvolution convolution(s, c.block, {}, 1);
      Floats x(channels * area(s.src), 0), made(32 * area(s.dst), 0);
      std::vector<float> w(static_cast<size_t>(32 * channels * 9));
      for (float& v : w) v = normal(random);
      for (int64_t i = 0; i < x.size; i++) x.data[i] = std::max(0.0f, normal(random));
      ASSERT_TRUE(WinogradConvolution::takes(s, c.block));
      Floats packed(static_cast<int64_t>(convolution.packed_floats()), NAN);
      Floats scratch(static_cast<int64_t>(convolution.scratch_floats()), NAN);
      convolution.pack(w.data(), packed.data);
      convolution.run(x.data, packed.data, nullptr, made.data, scratch.data);
      const Exact sums = exact(c, s, x.data, w);
      double error = 0, largest = 0;
      for (int64_t i = 0; i < made.size; i++) {
        error = std::max(error, std::fabs(made.data[i] - sums.values[static_cast<size_t>(i)]));
        largest = std::max(largest, std::fabs(sums.values[static_cast<size_t>(i)]));
      }
      EXPECT_LT(error, 1e-5 * largest) << channels;
    }
}

}  // namespace
}  // namespace gopt_runtime
