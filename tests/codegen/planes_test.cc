// Loops over planes against float64, for each kind of vectors that they are written for: this file and theirs are
// compiled once for each (CMakeLists.txt).
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "gopt_planar.h"
#include "gopt_pooling.h"

namespace gopt_runtime {
namespace {

struct Window {
  int64_t src[3], kernel[3], strides[3], dilations[3], pads[3];  // pads on both sides
  int64_t dst(int a) const { return (src[a] + 2 * pads[a] - (kernel[a] - 1) * dilations[a] - 1) / strides[a] + 1; }
};

class Drawer {
 public:
  explicit Drawer(uint32_t seed) : engine_(seed) {}
  int64_t pick(std::vector<int64_t> choices) { return choices[engine_() % choices.size()]; }
  std::vector<float> numbers(int64_t count) {
    std::vector<float> v(static_cast<size_t>(count));
    std::normal_distribution<float> draw;
    for (float& x : v) x = draw(engine_);
    return v;
  }
  Window window(const std::vector<int64_t>& kernels, const std::vector<int64_t>& dilations) {
    Window w;
    for (int a = 0; a < 3; a++) {
      w.kernel[a] = a == 0 ? pick({1, 1, 3}) : pick(kernels);
      w.strides[a] = pick({1, 1, 2, 3, 4});
      w.dilations[a] = pick(dilations);
      const int64_t reach = (w.kernel[a] - 1) * w.dilations[a];
      w.pads[a] = std::min(reach, pick({0, 1, 2}));
      w.src[a] = a == 0 ? pick({1, 2}) + reach : pick({1, 4, 9, 18, 35, 40}) + reach;
    }
    return w;
  }

 private:
  std::mt19937 engine_;
};

// `f(z, y, x of the output, its place)`.
template <class F>
void for_each_output(const Window& w, const F& f) {
  int64_t place = 0;
  for (int64_t z = 0; z < w.dst(0); z++)
    for (int64_t y = 0; y < w.dst(1); y++)
      for (int64_t x = 0; x < w.dst(2); x++) f(z, y, x, place++);
}
// `f(tap, element)` for each tap that lies within the source.
template <class F>
void for_each_tap(const Window& w, int64_t z, int64_t y, int64_t x, const F& f) {
  const int64_t out[3] = {z, y, x};
  int64_t at[3], k[3], tap = 0;
  for (k[0] = 0; k[0] < w.kernel[0]; k[0]++)
    for (k[1] = 0; k[1] < w.kernel[1]; k[1]++)
      for (k[2] = 0; k[2] < w.kernel[2]; k[2]++, tap++) {
        bool is_within = true;
        for (int a = 0; a < 3; a++) {
          at[a] = out[a] * w.strides[a] + k[a] * w.dilations[a] - w.pads[a];
          is_within = is_within && at[a] >= 0 && at[a] < w.src[a];
        }
        if (is_within) f(tap, (at[0] * w.src[1] + at[1]) * w.src[2] + at[2]);
      }
}

struct Aligned {
  explicit Aligned(size_t count) : floats(count + 32) {}
  float* data() { return reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(floats.data()) + 63) / 64 * 64); }
  std::vector<float> floats;
};

void check_depthwise(Drawer& drawer, bool lanes_are_channels) {
  const Window w = drawer.window({1, 2, 3, 5}, {1, 2, 5});
  PlanarShape s;
  s.batch = drawer.pick({1, 2});
  s.groups = drawer.pick({1, 3, 8, 13, 16, 21, 40});
  s.lanes_are_channels = lanes_are_channels;
  for (int a = 0; a < 3; a++) {
    s.src[a] = w.src[a];
    s.dst[a] = w.dst(a);
    s.kernel[a] = w.kernel[a];
    s.strides[a] = w.strides[a];
    s.dilations[a] = w.dilations[a];
    s.pads[a] = w.pads[a];
  }
  const int64_t source = area(s.src), result = area(s.dst), taps = area(s.kernel);
  const auto x = drawer.numbers(s.batch * s.groups * source), weights = drawer.numbers(s.groups * taps),
             bias = drawer.numbers(s.groups);
  std::vector<float> y(static_cast<size_t>(s.batch * s.groups * result));
  const PlanarConvolution planar(s, {{PostKind::Clip, -1.0f, 6.0f}}, 2);
  Aligned packed(planar.packed_floats()), scratch(planar.scratch_floats());
  planar.pack(weights.data(), packed.data());
  planar.run(x.data(), packed.data(), bias.data(), y.data(), scratch.data());
  for (int64_t plane = 0; plane < s.batch * s.groups; plane++) {
    const auto channel = static_cast<size_t>(plane % s.groups);
    for_each_output(w, [&](int64_t d, int64_t h, int64_t v, int64_t place) {
      double sum = bias[channel], size = std::abs(sum);
      for_each_tap(w, d, h, v, [&](int64_t tap, int64_t at) {
        const double term =
            static_cast<double>(x[static_cast<size_t>(plane * source + at)]) *
            static_cast<double>(weights[channel * static_cast<size_t>(taps) + static_cast<size_t>(tap)]);
        sum += term;
        size += std::abs(term);
      });
      EXPECT_NEAR(y[static_cast<size_t>(plane * result + place)], std::min(6.0, std::max(-1.0, sum)), 1e-6 * size);
    });
  }
}

// Numbers between two pages that nobody may read, at the begin of what is between them, or at the end.
class Guarded {
 public:
  Guarded(const std::vector<float>& numbers, bool at_begin) {
    const size_t bytes = numbers.size() * sizeof(float), inside = (bytes + kPage - 1) / kPage * kPage;
    size_ = inside + 2 * kPage;
    pages_ = static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    data_ = reinterpret_cast<float*>(pages_ + kPage + (at_begin ? 0 : inside - bytes));
    std::copy(numbers.begin(), numbers.end(), data_);
    mprotect(pages_, kPage, PROT_NONE);
    mprotect(pages_ + size_ - kPage, kPage, PROT_NONE);
  }
  ~Guarded() { munmap(pages_, size_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  const float* data() const { return data_; }

 private:
  static constexpr size_t kPage = 4096;
  size_t size_ = 0;
  char* pages_ = nullptr;
  float* data_ = nullptr;
};

// Of one tap, which is every so-manieth result.
void check_spread(int64_t channels, int64_t width, int64_t stride, int64_t pad, bool at_begin) {
  PlanarShape s;
  s.transposed = true;
  s.groups = channels;
  const int64_t whole = (width - 1) * stride + 1 - 2 * pad;
  for (int a = 0; a < 3; a++) s.src[a] = s.dst[a] = s.kernel[a] = s.strides[a] = s.dilations[a] = 1;
  s.src[2] = width, s.dst[2] = whole, s.strides[2] = stride, s.pads[2] = pad;
  Drawer drawer(5);
  const auto x = drawer.numbers(channels * width), weights = drawer.numbers(channels), bias = drawer.numbers(channels);
  const Guarded source(x, at_begin);
  std::vector<float> y(static_cast<size_t>(channels * whole));
  const PlanarConvolution planar(s, {}, 1);
  Aligned packed(planar.packed_floats()), scratch(planar.scratch_floats());
  planar.pack(weights.data(), packed.data());
  planar.run(source.data(), packed.data(), bias.data(), y.data(), scratch.data());
  for (int64_t c = 0; c < channels; c++)
    for (int64_t i = 0; i < whole; i++) {
      const bool is_seen = (i + pad) % stride == 0;
      const float seen = is_seen ? x[static_cast<size_t>(c * width + (i + pad) / stride)] : 0;
      EXPECT_NEAR(y[static_cast<size_t>(c * whole + i)],
                  seen * weights[static_cast<size_t>(c)] + bias[static_cast<size_t>(c)], 1e-5)
          << width << " by " << stride << " at " << i;
    }
}

void check_pooling(Drawer& drawer, bool average) {
  const Window w = drawer.window({1, 2, 3, 4, 5, 7}, {1, 1, 2});
  Pooling p;
  p.average = average;
  p.src = {drawer.pick({1, 3}), drawer.pick({1, 2, 5, 17}), w.src[0], w.src[1], w.src[2]};
  p.dst = {p.src[0], p.src[1], w.dst(0), w.dst(1), w.dst(2)};
  p.kernel.assign(w.kernel, w.kernel + 3);
  p.strides.assign(w.strides, w.strides + 3);
  p.dilations.assign(w.dilations, w.dilations + 3);
  p.pads.assign(w.pads, w.pads + 3);
  p.pads.insert(p.pads.end(), w.pads, w.pads + 3);
  const int64_t planes = p.src[0] * p.src[1], source = w.src[0] * w.src[1] * w.src[2],
                result = w.dst(0) * w.dst(1) * w.dst(2);
  auto x = drawer.numbers(planes * source);
  if (!average) x[x.size() / 2] = std::numeric_limits<float>::infinity();
  std::vector<float> y(static_cast<size_t>(planes * result));
  const RowPooling pooling(p, 2);
  Aligned scratch(pooling.scratch_floats());
  pooling.run(x.data(), y.data(), scratch.data());
  for (int64_t plane = 0; plane < planes; plane++)
    for_each_output(w, [&](int64_t d, int64_t h, int64_t v, int64_t place) {
      double sum = 0, greatest = -std::numeric_limits<double>::infinity(), count = 0;
      for_each_tap(w, d, h, v, [&](int64_t, int64_t at) {
        const double value = x[static_cast<size_t>(plane * source + at)];
        sum += value;
        greatest = std::max(greatest, value);
        count++;
      });
      const double expected = average ? sum / count : greatest, got = y[static_cast<size_t>(plane * result + place)];
      EXPECT_TRUE(got == expected || std::abs(got - expected) < 1e-5) << got << " is not " << expected;
    });
}

TEST(Planes, TransposedOnesReadNothingBesideTheSource) {
  for (const int64_t width : {7, 8, 9, 23})
    for (const int64_t stride : {2, 3, 5})
      for (const int64_t pad : {0, 2})
        for (const bool at_begin : {true, false}) check_spread(3, width, stride, pad, at_begin);
}

TEST(Planes, DepthwiseSumsAreThoseOfFloat64) {
  Drawer drawer(11);
  for (int i = 0; i < 120 && !testing::Test::HasFailure(); i++) check_depthwise(drawer, i % 3 != 0);
}

TEST(Planes, PooledWindowsAreThoseOfFloat64) {
  Drawer drawer(12);
  for (int i = 0; i < 200 && !testing::Test::HasFailure(); i++) check_pooling(drawer, i % 2 == 0);
}

}  // namespace
}  // namespace gopt_runtime
