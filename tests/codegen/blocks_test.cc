// Convolutions of images in blocks of channels against float64: transposed or not, channels that fill no block or
// panel, one to three axes, steps, dilations, borders on some sides, windows beyond the image, a depth of several
// parts, many positions, what is done before a result is stored, and what lies around it.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "floats_on_lines.h"
#include "gopt_blocks.h"

namespace gopt_runtime {
namespace {

struct Case {
  const char* name;
  PlanarShape shape;
  int64_t block = 8;
  int threads = 1;
};
std::ostream& operator<<(std::ostream& os, const Case& c) { return os << c.name; }

// Of two axes: kernel, step and border are those of both.
PlanarShape square(int64_t batch, int64_t in, int64_t out, int64_t height, int64_t width, int64_t kernel, int64_t step,
                   int64_t pad) {
  PlanarShape s;
  s.batch = batch, s.in = in, s.out = out;
  s.src[1] = height, s.src[2] = width;
  for (int a = 1; a < 3; a++) {
    s.kernel[a] = kernel, s.strides[a] = step, s.pads[a] = pad;
    s.dst[a] = (s.src[a] + 2 * pad - kernel) / step + 1;
  }
  return s;
}
PlanarShape with_dilations(PlanarShape s) {
  s.dilations[1] = 2, s.dilations[2] = 3;
  for (int a = 1; a < 3; a++) s.dst[a] = (s.src[a] + 2 * s.pads[a] - (s.kernel[a] - 1) * s.dilations[a] - 1) + 1;
  return s;
}
PlanarShape line() {
  PlanarShape s;
  s.in = 20, s.out = 24, s.src[2] = 31, s.kernel[2] = 5, s.strides[2] = 2, s.pads[2] = 2, s.dst[2] = 16;
  return s;
}
PlanarShape volume() {
  PlanarShape s;
  s.batch = 2, s.in = 8, s.out = 19;
  const int64_t src[] = {4, 5, 6}, kernel[] = {3, 2, 3}, pads[] = {1, 0, 2};
  for (int a = 0; a < 3; a++)
    s.src[a] = src[a], s.kernel[a] = kernel[a], s.pads[a] = pads[a], s.dst[a] = src[a] + pads[a] - kernel[a] + 1;
  return s;
}
// Padding on one side alone, of which some windows have nothing else.
PlanarShape beyond() {
  PlanarShape s = square(1, 16, 16, 5, 6, 2, 1, 0);
  s.dst[1] = 8, s.dst[2] = 9, s.pads[2] = 3;
  return s;
}

PlanarShape transposed(int64_t batch, int64_t in, int64_t out, int64_t height, int64_t width, int64_t kernel,
                       int64_t step, int64_t pad, int64_t more = 0) {
  PlanarShape s = square(batch, in, out, height, width, kernel, step, pad);
  s.transposed = true;
  for (int a = 1; a < 3; a++) s.dst[a] = (s.src[a] - 1) * step - 2 * pad + kernel + more;
  return s;
}
// Steps and dilations that leave some positions without a tap, and one axis in steps of one.
PlanarShape transposed_unevenly() {
  PlanarShape s = transposed(1, 20, 24, 6, 7, 3, 2, 1);
  s.strides[1] = 1, s.dilations[1] = 2, s.strides[2] = 4, s.dilations[2] = 2;
  s.dst[1] = 5 - 2 + 5, s.dst[2] = 6 * 4 - 2 + 5;
  return s;
}
PlanarShape transposed_volume() {
  PlanarShape s;
  s.batch = 2, s.in = 8, s.out = 19, s.transposed = true;
  const int64_t src[] = {3, 2, 5}, kernel[] = {3, 2, 4}, strides[] = {2, 1, 3}, pads[] = {1, 0, 2};
  for (int a = 0; a < 3; a++) {
    s.src[a] = src[a], s.kernel[a] = kernel[a], s.strides[a] = strides[a], s.pads[a] = pads[a];
    s.dst[a] = (src[a] - 1) * strides[a] + kernel[a] - 2 * pads[a];
  }
  return s;
}

const Case kCases[] = {
    {"Usual", square(1, 32, 32, 14, 14, 3, 1, 1), 8, 2},
    {"SmallImages", square(3, 48, 40, 7, 7, 3, 1, 1), 8, 2},
    {"BlocksNotFilled", square(2, 13, 21, 9, 8, 3, 1, 1), 8, 2},
    {"FewChannels", square(1, 3, 5, 9, 8, 3, 1, 1)},
    {"InSteps", square(2, 24, 24, 15, 14, 3, 2, 1), 8, 2},
    {"Dilated", with_dilations(square(1, 16, 24, 12, 13, 3, 1, 2)), 8, 3},
    {"NoBorder", square(2, 16, 24, 9, 9, 3, 1, 0), 8, 2},
    {"OneTapInSteps", square(2, 40, 24, 9, 8, 1, 2, 0), 8, 2},
    {"Deep", square(1, 200, 40, 5, 5, 3, 1, 1), 8, 2},
    {"ManyPositions", square(1, 40, 24, 40, 41, 3, 1, 1), 8, 2},
    {"MoreThreadsThanParts", square(1, 16, 16, 3, 2, 3, 1, 1), 8, 7},
    {"Line", line(), 8, 2},
    {"Volume", volume(), 8, 2},
    {"BeyondTheImage", beyond(), 8, 2},
    {"Transposed", transposed(1, 32, 40, 9, 10, 4, 2, 1), 8, 2},
    {"TransposedOfShortLines", transposed(2, 24, 40, 8, 8, 4, 2, 1), 8, 2},
    {"TransposedFewChannels", transposed(2, 3, 5, 4, 6, 3, 2, 1, 1), 8, 3},
    {"TransposedWithoutOverlap", transposed(2, 24, 21, 5, 7, 2, 2, 0), 8, 2},
    {"TransposedWithGaps", transposed(1, 16, 16, 5, 4, 2, 3, 0, 1), 8, 2},
    {"TransposedUnevenly", transposed_unevenly(), 8, 2},
    {"TransposedInStepsOfOne", transposed(1, 16, 16, 6, 9, 3, 1, 1)},
    {"TransposedDeep", transposed(1, 200, 24, 5, 4, 5, 2, 2), 8, 2},
    {"TransposedCutOff", transposed(1, 16, 16, 4, 5, 3, 2, 4)},
    {"TransposedVolume", transposed_volume(), 8, 2},
    {"TransposedBlocksOf16", transposed(1, 24, 40, 5, 8, 3, 2, 1), 16, 2},
    {"BlocksOf16", square(2, 24, 40, 9, 8, 3, 1, 1), 16, 2},
};

class Blocks : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, Blocks, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

int64_t filled(const Case& c, int64_t channels) { return (channels + c.block - 1) / c.block * c.block; }
int64_t place(const Case& c, int64_t channels, int64_t positions, int64_t image, int64_t channel, int64_t position) {
  return image * filled(c, channels) * positions + (channel / c.block * positions + position) * c.block +
         channel % c.block;
}

TEST_P(Blocks, AgreeWithFloat64) {
  const Case& c = GetParam();
  const PlanarShape& s = c.shape;
  if (!BlockConvolution::takes_blocks_of(c.block)) GTEST_SKIP() << "registers hold more than a block here";
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const int64_t from = area(s.src), to = area(s.dst), taps = area(s.kernel);
  Floats x(s.batch * filled(c, s.in) * from, 0), bias(s.out, 0), factors(s.out, 0);
  std::vector<float> w(static_cast<size_t>(s.out * s.in * taps));
  for (float& v : w) v = normal(random);
  for (int64_t i = 0; i < s.out; i++) bias.data[i] = normal(random), factors.data[i] = normal(random);
  for (int64_t n = 0; n < s.batch; n++)
    for (int64_t i = 0; i < s.in; i++)
      for (int64_t p = 0; p < from; p++) x.data[place(c, s.in, from, n, i, p)] = normal(random);

  for (int which = 0; which < 7; which++) {
    std::vector<Post> posts;
    if (which == 1) posts = {{PostKind::Relu}};
    if (which == 2) posts = {{PostKind::Add}, {PostKind::Relu}};
    if (which == 3) posts = {{PostKind::Sum}, {PostKind::Relu}};
    if (which == 4) posts = {{PostKind::Sum}, {PostKind::Clip, -1.0f, 2.0f}};
    if (which == 5) posts = {{PostKind::Relu, 0.1f}, {PostKind::Add, 0, 0, nullptr, {1, s.out, 1, 1}}};
    if (which == 6) posts = {{PostKind::Add}, {PostKind::Logistic}};
    Floats added(s.batch * filled(c, s.out) * to, 0), made(added.size, 0.25f);
    for (int64_t i = 0; i < added.size; i++) added.data[i] = normal(random);
    if (which == 3 || which == 4) std::copy(added.data, added.data + added.size, made.data);

    BlockConvolution convolution(s, c.block, posts, c.threads);
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
            ASSERT_EQ(made.data[at], 0.0f) << "what fills a block";
            continue;
          }
          double sum = which == 0 ? 0 : bias.data[o], magnitude = std::fabs(sum);
          const int64_t position[] = {p / s.dst[2] / s.dst[1], p / s.dst[2] % s.dst[1], p % s.dst[2]};
          for (int64_t tap = 0; tap < taps; tap++) {
            const int64_t own[] = {tap / s.kernel[2] / s.kernel[1], tap / s.kernel[2] % s.kernel[1], tap % s.kernel[2]};
            int64_t source = 0;
            bool is_there = true;
            for (int a = 0; a < 3; a++) {
              const int64_t reach = own[a] * s.dilations[a] - s.pads[a],
                            steps = s.transposed ? position[a] - reach : position[a] * s.strides[a] + reach,
                            i = s.transposed ? steps / s.strides[a] : steps;
              is_there = is_there && steps >= 0 && i < s.src[a] && (!s.transposed || steps % s.strides[a] == 0);
              source = source * s.src[a] + i;
            }
            for (int64_t i = 0; is_there && i < s.in; i++) {
              const double term = static_cast<double>(x.data[place(c, s.in, from, n, i, source)]) *
                                  w[static_cast<size_t>((s.transposed ? i * s.out + o : o * s.in + i) * taps + tap)];
              sum += term, magnitude += std::fabs(term);
            }
          }
          if (which == 2 || which == 3 || which == 4 || which == 6) sum += added.data[at];
          if (which == 1 || which == 2 || which == 3) sum = std::max(sum, 0.0);
          if (which == 4) sum = std::clamp(sum, -1.0, 2.0);
          if (which == 5) sum = (sum < 0 ? 0.1f * sum : sum) + factors.data[o];
          if (which == 6) sum = 1 / (1 + std::exp(-sum));
          ASSERT_NEAR(made.data[at], sum, 1e-6 * magnitude + 2e-6) << "image " << n << " position " << p << " " << o;
        }
    // Nothing around is written.
    for (const float* v = made.data + made.size; v < made.values.data() + made.values.size(); v++)
      ASSERT_TRUE(std::isnan(*v));
  }
}

}  // namespace
}  // namespace gopt_runtime
