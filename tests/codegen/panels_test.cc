// Products by panels of weights against float64: rows and columns that fill no block, images in blocks of channels and
// with channels last, steps, what is done before a result is stored, and what lies around it.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "floats_on_lines.h"
#include "gopt_panels.h"

namespace gopt_runtime {
namespace {

struct Case {
  const char* name;
  int64_t images, height, width, in, out, step = 1;
  bool in_blocks = false;
  int threads = 1;
  int64_t block = 16;  // channels
};
std::ostream& operator<<(std::ostream& os, const Case& c) { return os << c.name; }

const Case kCases[] = {
    {"Rows9", 1, 1, 9, 33, 20},
    {"Rows128", 1, 1, 128, 96, 80, 1, false, 2},
    {"Rows197", 1, 1, 197, 70, 47, 1, false, 3},
    {"OneColumn", 1, 1, 40, 17, 1},
    {"Deep", 1, 1, 29, 3000, 40, 1, false, 2},
    {"DeepBlocks", 1, 5, 5, 2100, 40, 1, true, 2},
    {"DeepInSteps", 2, 5, 5, 1030, 70, 2, false, 2},
    {"ManyRows", 1, 1, 5000, 64, 33, 1, false, 2},
    {"MoreThreadsThanParts", 1, 1, 14, 16, 16, 1, false, 7},
    {"ManyThreads", 1, 1, 100, 16, 200, 1, false, 7},
    {"ChannelsLast", 2, 7, 9, 24, 40, 1, false, 2},
    {"ChannelsLastInSteps", 2, 8, 9, 24, 40, 2, false, 2},
    {"Blocks", 2, 7, 9, 48, 32, 1, true, 2},
    {"BlocksNotFilled", 2, 7, 9, 37, 23, 1, true, 2},
    {"BlocksInSteps", 3, 15, 14, 40, 72, 2, true, 2},
    {"BlocksOfOnePosition", 20, 1, 1, 40, 24, 1, true},
    {"BlocksOf8", 2, 7, 9, 48, 40, 1, true, 2, 8},
    {"BlocksOf8NotFilled", 2, 7, 9, 37, 19, 1, true, 2, 8},
    {"BlocksOf8InSteps", 3, 15, 14, 24, 72, 2, true, 2, 8},
    {"BlocksOf8OfOnePosition", 20, 1, 1, 40, 24, 1, true, 1, 8},
    {"OneBlockOf8", 1, 6, 5, 5, 3, 1, true, 1, 8},
    {"DeepBlocksOf8", 1, 5, 5, 2100, 40, 1, true, 2, 8},
};

class Panels : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, Panels, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TileOrder order_of(const Case& c, int64_t channels, int64_t positions) {
  if (!c.in_blocks) return {channels * positions, channels, 16, 1};
  const int64_t blocks = (channels + c.block - 1) / c.block;
  return {c.block * blocks * positions, c.block, c.block * positions, 1, Element::Float, true, c.block};
}
int64_t place(const TileOrder& o, int64_t image, int64_t position, int64_t channel) {
  return image * o.image + position * o.position + channel / o.channels * o.block + channel % o.channels;
}

TEST_P(Panels, AgreeWithFloat64) {
  const Case& c = GetParam();
  if (c.in_blocks && !PanelProduct::takes_blocks_of(c.block)) GTEST_SKIP() << "registers hold more than a block here";
  std::mt19937 random(std::random_device{}());
  std::normal_distribution<float> normal;
  const int64_t height = (c.height - 1) / c.step + 1, width = (c.width - 1) / c.step + 1;
  const int64_t from = c.height * c.width, to = height * width;
  const TileOrder src = order_of(c, c.in, from), dst = order_of(c, c.out, to);
  PanelShape shape{c.images, 1, to, c.in, c.out};
  if (c.step > 1) shape = {c.images, height, width, c.in, c.out, c.step * c.width, c.step};

  Floats x(c.images * src.image, 0), bias(c.out, 0), factors(c.out, 0);
  std::vector<float> w(static_cast<size_t>(c.in * c.out));
  for (float& v : w) v = normal(random);
  for (int64_t i = 0; i < c.out; i++) bias.data[i] = normal(random), factors.data[i] = normal(random);
  for (int64_t n = 0; n < c.images; n++)
    for (int64_t p = 0; p < from; p++)
      for (int64_t i = 0; i < c.in; i++) x.data[place(src, n, p, i)] = normal(random);

  // Weights as a product has them (row by row), and as a convolution has them.
  for (const bool is_turned : {false, true})
    for (int which = 0; which < 10; which++) {
      std::vector<Post> posts;
      if (which == 1) posts = {{PostKind::Relu}};
      if (which == 2) posts = {{PostKind::Add}, {PostKind::Logistic}};
      if (which == 3) posts = {{PostKind::Sum}, {PostKind::Clip, -1.0f, 2.0f}};
      if (which == 5) posts = {{PostKind::Add}, {PostKind::Relu}};
      if (which == 6) posts = {{PostKind::Sum}};
      if (which == 4) posts = {{PostKind::GeluErf}, {PostKind::Add, 0, 0, nullptr, {1, c.out, 1, 1}}};
      if (which == 7) posts = {{PostKind::Add, 0, 0, nullptr, {c.out}}, {PostKind::Relu}};
      if (which == 8) posts = {{PostKind::Relu, 0.1f}};
      if (which == 9) posts = {{PostKind::Add, 0, 0, nullptr, {c.images * to, c.out}}, {PostKind::Relu}};
      Floats added(c.images * dst.image, 0), made(c.images * dst.image, c.in_blocks ? 0.25f : NAN);
      for (int64_t i = 0; i < added.size; i++) added.data[i] = normal(random);
      if (which == 3 || which == 6) std::copy(added.data, added.data + added.size, made.data);

      PanelProduct product(shape, src, dst, posts, c.threads);
      if (which == 2 || which == 5 || which == 9) product.bind_post(0, added.data);
      if (which == 7) product.bind_post(0, factors.data);
      if (which == 4) product.bind_post(1, factors.data);
      Floats packed(static_cast<int64_t>(product.packed_floats()), NAN);
      product.pack(w.data(), is_turned ? 1 : c.out, is_turned ? c.in : 1, packed.data);
      Floats scratch(static_cast<int64_t>(product.scratch_floats()), NAN);
      product.run(x.data, packed.data, which == 0 ? nullptr : bias.data, made.data, scratch.data);

      for (int64_t n = 0; n < c.images; n++)
        for (int64_t p = 0; p < to; p++) {
          const int64_t position = p / width * c.step * c.width + p % width * c.step;
          for (int64_t o = 0; o < c.out; o++) {
            double sum = which == 0 ? 0 : bias.data[o], magnitude = std::fabs(sum);
            for (int64_t i = 0; i < c.in; i++) {
              const double term = static_cast<double>(x.data[place(src, n, position, i)]) *
                                  w[static_cast<size_t>(is_turned ? o * c.in + i : i * c.out + o)];
              sum += term, magnitude += std::fabs(term);
            }
            const int64_t at = place(dst, n, p, o);
            if (which == 1) sum = std::max(sum, 0.0);
            if (which == 2) sum = 1 / (1 + std::exp(-(sum + added.data[at])));
            if (which == 3) sum = std::clamp(sum + added.data[at], -1.0, 2.0);
            if (which == 5 || which == 9) sum = std::max(sum + added.data[at], 0.0);
            if (which == 7) sum = std::max(sum + factors.data[o], 0.0);
            if (which == 8 && sum < 0) sum *= 0.1f;
            if (which == 6) sum += added.data[at];
            if (which == 4) sum = sum / 2 * (1 + std::erf(sum * std::sqrt(0.5))) + factors.data[o];
            ASSERT_NEAR(made.data[at], sum, 1e-6 * magnitude + 2e-6) << "image " << n << " position " << p << " " << o;
          }
          for (int64_t o = c.out; c.in_blocks && o < (c.out + c.block - 1) / c.block * c.block; o++)
            ASSERT_EQ(made.data[place(dst, n, p, o)], 0.0f) << "what fills a block";
        }
      // Nothing around is written.
      for (const float* v = made.data + made.size; v < made.values.data() + made.values.size(); v++)
        ASSERT_TRUE(std::isnan(*v));
    }
}

TEST(Panels, WhatIsNoNumberStaysWhereItIs) {
  PanelProduct product({1, 1, 30, 40, 50}, {0, 40, 16, 1}, {0, 50, 16, 1}, {}, 2);
  Floats x(30 * 40, 1), w(40 * 50, 1), packed(static_cast<int64_t>(product.packed_floats()), 0), made(30 * 50, 0);
  x.data[7 * 40 + 3] = NAN, x.data[20 * 40 + 39] = INFINITY;
  w.data[5 * 50 + 49] = -INFINITY;
  product.pack(w.data, 50, 1, packed.data);
  Floats scratch(static_cast<int64_t>(product.scratch_floats()), NAN);
  product.run(x.data, packed.data, nullptr, made.data, scratch.data);
  for (int64_t r = 0; r < 30; r++)
    for (int64_t o = 0; o < 50; o++) {
      const float got = made.data[r * 50 + o];
      if (r == 7 || (r == 20 && o == 49))
        ASSERT_TRUE(std::isnan(got)) << r << " " << o;
      else
        ASSERT_EQ(got, r == 20 ? INFINITY : o == 49 ? -INFINITY : 40.0f) << r << " " << o;
    }
}

}  // namespace
}  // namespace gopt_runtime
