// Convolutions and products on tiles of the CPU, by the code that computes what its matrix unit does, rounding for
// rounding, against float64: indexes, tails, what is done before a result is stored, and what the terms leave out.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "gopt_terms.h"
#include "gopt_tiles.h"

namespace gopt_runtime {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Case {
  const char* name;
  TileShape shape;
  char order = 'l';  // of source and result: l: channels last, b: in blocks, p: plain
  int threads = 1;
};
std::ostream& operator<<(std::ostream& os, const Case& c) { return os << c.name; }

int64_t count(const int64_t (&extents)[3]) { return extents[0] * extents[1] * extents[2]; }

TileOrder order_of(char order, int64_t channels, int64_t positions, Element element = Element::Float) {
  const int64_t filled = (channels + 15) / 16 * 16;
  if (order == 'l') return {channels * positions, channels, 16, 1, element};
  if (order == 'b') return {filled * positions, 16, 16 * positions, 1, element, true};
  return {channels * positions, 1, 16 * positions, positions, element};
}
size_t place(const TileOrder& o, int64_t image, int64_t position, int64_t channel) {
  return static_cast<size_t>(image * o.image + position * o.position + channel / 16 * o.block +
                             channel % 16 * o.channel);
}

// Memory as kernels want it: on lines, and filled with what nobody may rely on.
template <class T>
struct Lines {
  explicit Lines(size_t bytes, int fill = 0xff) : size(bytes / sizeof(T)) {
    data = static_cast<T*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64));
    std::memset(data, fill, (bytes + 127) / 64 * 64);
  }
  ~Lines() { std::free(data); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  T& operator[](size_t i) { return data[i]; }
  T* data;
  size_t size;
};

using Draw = float (*)(std::mt19937&);
float normal(std::mt19937& random) { return std::normal_distribution<float>()(random); }
float mixed(std::mt19937& random) {
  return std::ldexp(std::normal_distribution<float>()(random), static_cast<int>(random() % 41) - 20);
}

// A convolution, its numbers, and its results: exact, by a chain of fused multiplications and additions in floats, and
// on tiles.
class Convolved {
 public:
  explicit Convolved(const Case& c, uint32_t seed = 1, Draw draw = normal, float weight_scale = 1)
      : c_(c), s_(c.shape) {
    std::mt19937 random(seed);
    x.resize(static_cast<size_t>(s_.batch * s_.in * count(s_.src)));
    w.resize(static_cast<size_t>(s_.out * (s_.in / s_.groups) * count(s_.kernel)));
    for (float& v : x) v = draw(random);
    for (float& v : w) v = draw(random) * weight_scale;
    bias.resize(static_cast<size_t>(s_.out), 0.0f);
    added.resize(static_cast<size_t>(s_.batch * s_.out * count(s_.dst)), 0.0f);
  }

  void compute_exactly() {
    exact.clear(), by_floats.clear(), magnitudes.clear();
    for (int64_t n = 0; n < s_.batch; n++)
      for (int64_t o = 0; o < s_.out; o++)
        for (int64_t p = 0; p < count(s_.dst); p++) sum_at(n, o, p);
  }

  // In the order of `exact`. Expects no element beside the result to be written, and zeros where blocks are filled.
  std::vector<float> on_tiles(int terms, const std::vector<Post>& posts = {}, Element element = Element::Float,
                              int64_t near = kNearTiles, TileUnit unit = TileUnit::Emulated) {
    const TileOrder from = order_of(c_.order, s_.in, count(s_.src), element),
                    to = order_of(c_.order, s_.out, count(s_.dst), element);
    TileConvolution tiles(s_, from, to, terms, posts, c_.threads, unit, near);
    const size_t wide = element == Element::Float ? 4 : 2;
    Lines<char> src(static_cast<size_t>(s_.batch * from.image) * wide, 0),
        dst(static_cast<size_t>(s_.batch * to.image) * wide, 0x3d),
        other(static_cast<size_t>(s_.batch * to.image) * wide), packed(tiles.packed_bytes()),
        scratch(tiles.scratch_bytes());
    for (int64_t n = 0, i = 0; n < s_.batch; n++)
      for (int64_t c = 0; c < s_.in; c++)
        for (int64_t p = 0; p < count(s_.src); p++, i++) put(src.data, element, place(from, n, p, c), x[i]);
    for (int64_t n = 0, i = 0; n < s_.batch; n++)
      for (int64_t c = 0; c < s_.out; c++)
        for (int64_t p = 0; p < count(s_.dst); p++, i++) put(other.data, element, place(to, n, p, c), added[i]);
    for (size_t i = 0; i < posts.size(); i++)
      if (posts[i].kind == PostKind::Add && posts[i].dims.empty())
        tiles.bind_post(static_cast<int>(i), other.data);
      else if (posts[i].kind == PostKind::Sum)
        std::memcpy(dst.data, other.data, dst.size);
    const int64_t taps = count(s_.kernel);
    const TileWeights weights{w.data(), s_.in / s_.groups * taps, taps, 1};
    EXPECT_TRUE(tiles.takes(weights));
    tiles.pack(weights, packed.data);
    tiles.run(src.data, packed.data, bias.data(), dst.data, scratch.data);
    std::vector<float> result;
    for (int64_t n = 0; n < s_.batch; n++)
      for (int64_t c = 0; c < s_.out; c++)
        for (int64_t p = 0; p < count(s_.dst); p++) result.push_back(get(dst.data, element, place(to, n, p, c)));
    for (int64_t n = 0; to.fills_blocks && n < s_.batch; n++)
      for (int64_t c = s_.out; c < (s_.out + 15) / 16 * 16; c++)
        for (int64_t p = 0; p < count(s_.dst); p++) EXPECT_EQ(get(dst.data, element, place(to, n, p, c)), 0.0f);
    return result;
  }

  double largest() const {
    double most = 0;
    for (const double v : exact) most = std::max(most, std::fabs(v));
    return most;
  }
  // The largest, by the sum of magnitudes that each result is made of.
  double error(const std::vector<float>& made) const {
    double most = 0;
    EXPECT_EQ(made.size(), exact.size());
    for (size_t i = 0; i < exact.size(); i++)
      most = std::max(most, std::fabs(made[i] - exact[i]) / std::max(magnitudes[i], 1e-300));
    return most;
  }
  double mean_error(const std::vector<float>& made) const {
    double sum = 0;
    for (size_t i = 0; i < exact.size(); i++) sum += std::fabs(made[i] - exact[i]) / std::max(magnitudes[i], 1e-300);
    return sum / static_cast<double>(exact.size());
  }

  std::vector<float> x, w, bias, added, by_floats;
  std::vector<double> exact, magnitudes;

 private:
  static void put(char* data, Element element, size_t i, float value) {
    if (element == Element::Float) {
      reinterpret_cast<float*>(data)[i] = value;
    } else {
      reinterpret_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(rounded_to_upper(bits_of(value)) >> 16);
    }
  }
  static float get(const char* data, Element element, size_t i) {
    if (element == Element::Float) return reinterpret_cast<const float*>(data)[i];
    return float_of(static_cast<uint32_t>(reinterpret_cast<const uint16_t*>(data)[i]) << 16);
  }

  void sum_at(int64_t n, int64_t o, int64_t p) {
    const int64_t at[3] = {p / (s_.dst[1] * s_.dst[2]), p / s_.dst[2] % s_.dst[1], p % s_.dst[2]};
    double sum = bias[static_cast<size_t>(o)], magnitude = std::fabs(sum);
    float chain = bias[static_cast<size_t>(o)];
    const int64_t in = s_.in / s_.groups, before = o / (s_.out / s_.groups) * in;
    for (int64_t i = 0; i < in; i++)
      for (int64_t k = 0; k < count(s_.kernel); k++) {
        const int64_t tap[3] = {k / (s_.kernel[1] * s_.kernel[2]), k / s_.kernel[2] % s_.kernel[1], k % s_.kernel[2]};
        int64_t from = 0;
        bool inside = true;
        for (int a = 0; a < 3; a++) {
          const int64_t q = at[a] * s_.strides[a] + tap[a] * s_.dilations[a] - s_.pads[a];
          inside = inside && q >= 0 && q < s_.src[a];
          from = from * s_.src[a] + q;
        }
        if (!inside) continue;
        const float value = x[static_cast<size_t>((n * s_.in + before + i) * count(s_.src) + from)],
                    weight = w[static_cast<size_t>((o * in + i) * count(s_.kernel) + k)];
        sum += static_cast<double>(value) * weight;
        magnitude += std::fabs(static_cast<double>(value) * weight);
        chain = std::fma(value, weight, chain);
      }
    exact.push_back(sum);
    magnitudes.push_back(magnitude);
    by_floats.push_back(chain);
  }

  const Case c_;
  const TileShape s_;
};

TileShape rows(int64_t rows, int64_t depth, int64_t columns) {
  TileShape s;
  s.in = depth, s.out = columns, s.src[2] = s.dst[2] = rows;
  return s;
}
TileShape image(int64_t batch, int64_t in, int64_t out, int64_t height, int64_t width, int64_t kernel, int64_t stride,
                int64_t pad, int64_t dilation = 1) {
  TileShape s;
  s.batch = batch, s.in = in, s.out = out;
  s.src[1] = height, s.src[2] = width;
  for (int a = 1; a < 3; a++) {
    s.kernel[a] = kernel, s.strides[a] = stride, s.pads[a] = pad, s.dilations[a] = dilation;
    s.dst[a] = (s.src[a] + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
  }
  return s;
}
TileShape uneven() {
  TileShape s = image(2, 35, 20, 9, 70, 3, 1, 1);
  s.kernel[2] = 5, s.strides[1] = 2, s.pads[2] = 0, s.dilations[2] = 2;
  s.dst[1] = 5, s.dst[2] = 62;
  return s;
}
TileShape grouped(TileShape s, int64_t groups) {
  s.groups = groups;
  return s;
}
TileShape line() {
  TileShape s;
  s.in = 2, s.out = 24, s.batch = 2;
  s.src[2] = 211, s.kernel[2] = 15, s.strides[2] = 2, s.pads[2] = 7, s.dst[2] = 106;
  return s;
}
TileShape volume() {
  TileShape s = image(1, 20, 33, 6, 7, 3, 2, 1);
  s.src[0] = 5, s.kernel[0] = 2, s.strides[0] = 2, s.pads[0] = 1, s.dst[0] = 3;
  return s;
}

const Case kCases[] = {
    {"Rows1", rows(1, 70, 50)},
    {"Rows5", rows(5, 32, 16)},
    {"Rows16", rows(16, 33, 17)},
    {"Rows17", rows(17, 64, 48), 'l', 2},
    {"Rows100", rows(100, 100, 130), 'l', 3},
    {"RowsPlain", rows(37, 40, 40), 'p'},
    {"SumsWait", rows(300, 2000, 40), 'l', 2},
    {"RowsPassAgain", rows(700, 900, 33), 'l', 1},
    {"Pointwise", image(2, 48, 40, 7, 9, 1, 1, 0), 'b'},
    {"PointwiseLast", image(2, 48, 40, 7, 9, 1, 1, 0), 'l', 2},
    {"PointwiseStrided", image(2, 48, 40, 7, 9, 1, 2, 0), 'b'},
    {"Window3", image(1, 32, 64, 14, 14, 3, 1, 1), 'b', 2},
    {"Window3Plain", image(1, 20, 24, 8, 11, 3, 1, 1), 'p', 2},
    {"Window3Last", image(3, 20, 24, 8, 11, 3, 1, 1), 'l', 4},
    {"Window3Strided", image(2, 40, 24, 15, 13, 3, 2, 1), 'b', 2},
    {"Window7", image(1, 3, 24, 30, 29, 7, 2, 3), 'p'},
    {"StemLast", image(2, 3, 20, 23, 131, 3, 2, 1), 'l', 2},
    {"StemBlocked", image(1, 4, 16, 19, 17, 8, 1, 2), 'b', 2},
    {"StemOfTwoBlocks", image(1, 3, 17, 40, 43, 11, 4, 2), 'p'},
    {"Line", line(), 'l'},
    {"GroupsOfFour", grouped(image(1, 64, 64, 9, 11, 3, 1, 1), 16), 'l', 2},
    {"GroupsOfEightBlocked", grouped(image(2, 32, 64, 8, 7, 3, 2, 1), 4), 'b'},
    {"GroupsOfManyResults", grouped(image(1, 32, 128, 7, 7, 1, 1, 0), 2), 'l'},
    {"GroupsOfManyChannels", grouped(image(1, 256, 64, 6, 5, 3, 1, 1), 4), 'l', 3},
    {"GroupsOfHalves", grouped(image(1, 64, 32, 5, 9, 1, 1, 0), 2), 'b'},
    {"Window5Dilated", image(1, 17, 16, 14, 19, 5, 1, 4, 2), 'l'},
    {"StridesBeyondTheWindow", image(1, 33, 16, 14, 19, 2, 3, 0), 'b'},
    {"Uneven", uneven(), 'l', 2},
    {"Volume", volume(), 'b', 2},
};

class Tiles : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, Tiles, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// By the sum of magnitudes: a float has 24 bits, two terms 16, one 8.
TEST_P(Tiles, AgreeWithFloat64) {
  Convolved run(GetParam(), 3);
  run.compute_exactly();
  EXPECT_LE(run.error(run.on_tiles(3)), 3e-7);
  EXPECT_LE(run.error(run.on_tiles(2)), 1e-5);
  EXPECT_LE(run.error(run.on_tiles(1)), 4e-3);
}

// Where little stays near: rows are copied in parts, and sums wait for more channels.
constexpr int64_t kLittle = 6 << 10;
TEST_P(Tiles, AgreeWithFloat64InParts) {
  Convolved run(GetParam(), 4);
  run.compute_exactly();
  EXPECT_LE(run.error(run.on_tiles(3, {}, Element::Float, kLittle)), 3e-7);
  EXPECT_LE(run.error(run.on_tiles(2, {}, Element::Float, kLittle)), 1e-5);
  for (auto* numbers : {&run.x, &run.w})
    for (float& v : *numbers) v = float_of(rounded_to_upper(bits_of(v)));
  run.compute_exactly();
  EXPECT_LE(run.error(run.on_tiles(1, {}, Element::BFloat16, kLittle)), 4e-3);
}

TEST_P(Tiles, AreTheSameByTheUnit) {
  if (!has_amx()) GTEST_SKIP() << "no AMX here";
  Convolved run(GetParam(), std::random_device()());
  for (float& b : run.bias) b = 0.3f;
  for (const int64_t near : {kLittle, kNearTiles})
    for (const int terms : {1, 2, 3}) {
      const Element element = terms == 1 ? Element::BFloat16 : Element::Float;
      EXPECT_EQ(run.on_tiles(terms, {{PostKind::Relu}}, element, near, TileUnit::Amx),
                run.on_tiles(terms, {{PostKind::Relu}}, element, near));
    }
}

// On fresh numbers, of one size and of sizes that differ by 2^40: three terms are no worse than arithmetic in floats.
// The mean of 2,000 results says it (1.05 times that of floats at most in 4,000 such draws); the largest error is luck,
// 0.4 to 1.75 times that of floats, and tells of a single result that is wrong.
TEST_P(Tiles, ThreeTermsAreNoWorseThanFloats) {
  for (const Draw draw : {normal, mixed}) {
    double largest = 0, largest_of_floats = 0, sum = 0, sum_of_floats = 0;
    size_t results = 0;
    while (results < 2000) {
      Convolved run(GetParam(), std::random_device()(), draw);
      run.compute_exactly();
      const std::vector<float> made = run.on_tiles(3);
      largest = std::max(largest, run.error(made));
      largest_of_floats = std::max(largest_of_floats, run.error(run.by_floats));
      sum += run.mean_error(made) * static_cast<double>(made.size());
      sum_of_floats += run.mean_error(run.by_floats) * static_cast<double>(made.size());
      results += made.size();
    }
    EXPECT_LE(largest, 3 * std::max(largest_of_floats, 1e-7));
    EXPECT_LE(sum / static_cast<double>(results), std::max(1.2 * sum_of_floats / static_cast<double>(results), 5e-8));
  }
}

TEST_P(Tiles, WhatFollowsIsDoneBeforeResultsAreStored) {
  Convolved run(GetParam(), 7);
  std::mt19937 random(11);
  std::vector<float> channels;
  for (float& b : run.bias) b = normal(random), channels.push_back(normal(random));
  for (float& a : run.added) a = normal(random);
  run.compute_exactly();
  const int64_t positions = count(GetParam().shape.dst), out = GetParam().shape.out;
  std::vector<Post> posts{{PostKind::Add}, {PostKind::Relu}, {PostKind::Add, 0, 0, channels.data(), {1, out, 1, 1}}};
  for (const PostKind kind : {PostKind::Add, PostKind::Sum}) {
    posts[0].kind = kind;
    const std::vector<float> made = run.on_tiles(3, posts);
    for (size_t i = 0; i < made.size(); i++) {
      const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / positions % out);
      ASSERT_NEAR(made[i], std::max(0.0, run.exact[i] + run.added[i]) + channels[channel],
                  1e-6 * run.magnitudes[i] + 1e-6);
    }
  }
}

// What vectors do by themselves, and activations after it, with results of both types.
TEST_P(Tiles, AnAdditionAndAnActivationFollow) {
  Convolved run(GetParam(), 9);
  std::mt19937 random(12);
  for (float& b : run.bias) b = normal(random);
  for (auto* numbers : {&run.added, &run.x, &run.w})
    for (float& v : *numbers) v = float_of(rounded_to_upper(bits_of(numbers == &run.added ? normal(random) : v)));
  run.compute_exactly();
  const auto swish = [](double v) { return v / (1 + std::exp(-v)); };
  const auto gelu = [](double v) { return 0.5 * v * (1 + std::erf(v * std::sqrt(0.5))); };
  const auto clip = [](double v) { return std::min(0.75, std::max(-0.5, v)); };
  const auto same = [](double v) { return v; };
  const std::pair<Post, double (*)(double)> activations[] = {{{PostKind::Linear, 1}, same},
                                                             {{PostKind::Clip, -0.5f, 0.75f}, clip},
                                                             {{PostKind::Swish, 1}, swish},
                                                             {{PostKind::GeluErf}, gelu}};
  for (const Element element : {Element::Float, Element::BFloat16})
    for (const auto& [activation, function] : activations)
      for (const PostKind kind : {PostKind::Add, PostKind::Sum, PostKind::Linear}) {
        std::vector<Post> posts{activation};
        if (kind != PostKind::Linear) posts.insert(posts.begin(), Post{kind});
        const std::vector<float> made = run.on_tiles(element == Element::Float ? 3 : 1, posts, element);
        for (size_t i = 0; i < made.size(); i++) {
          const double wanted = function(run.exact[i] + (kind == PostKind::Linear ? 0.0 : run.added[i]));
          ASSERT_NEAR(made[i], wanted,
                      2e-6 * run.magnitudes[i] + 2e-6 + (element == Element::Float ? 0 : 4e-3 * std::fabs(wanted)))
              << i;
        }
      }
}

TEST_P(Tiles, HalvesAreOneTerm) {
  Convolved run(GetParam(), 5);
  for (auto* numbers : {&run.x, &run.w})
    for (float& v : *numbers) v = float_of(rounded_to_upper(bits_of(v)));
  run.compute_exactly();
  const std::vector<float> made = run.on_tiles(1, {}, Element::BFloat16);
  for (size_t i = 0; i < made.size(); i++)
    ASSERT_NEAR(made[i], run.exact[i], 4e-3 * std::fabs(run.exact[i]) + 1e-6 * run.magnitudes[i]);
}

// Infinities and what is no number stay where they are, and are what floats make of them; the largest floats, whose
// nearest number of 8 bits is infinite, stay numbers.
TEST_P(Tiles, SpecialNumbersAreThoseOfFloats) {
  if (GetParam().shape.in > 500) GTEST_SKIP() << "the same as for fewer channels";
  for (const int terms : {2, 3})
    for (const float special : {kInfinity, -kInfinity, static_cast<float>(NAN), 3.402e38f, -3.4e38f,
                                std::numeric_limits<float>::max(), -std::numeric_limits<float>::max()}) {
      Convolved run(GetParam(), 13);
      for (float& v : run.w) v *= 0x1p-4f;
      if (std::isfinite(special))
        for (float& v : run.x) v *= 0x1p100f;
      run.x[run.x.size() / 2] = special;
      run.x[run.x.size() / 3] = special;
      run.compute_exactly();
      const std::vector<float> made = run.on_tiles(terms);
      for (size_t i = 0; i < made.size(); i++) {
        const float wanted = run.by_floats[i];
        if (std::isnan(wanted)) {
          ASSERT_TRUE(std::isnan(made[i])) << special << " at " << i;
        } else if (std::isinf(wanted)) {
          ASSERT_EQ(made[i], wanted) << special << " at " << i;
        } else {
          ASSERT_NEAR(made[i], run.exact[i], (terms == 2 ? 4e-5 : 1e-6) * run.magnitudes[i]) << special << " at " << i;
        }
      }
    }
}

// What is not finite stays in its group, of halves, too.
TEST_P(Tiles, InfinitiesStayInTheirGroup) {
  if (GetParam().shape.groups == 1) GTEST_SKIP() << "one group";
  Convolved run(GetParam(), 15);
  for (auto* numbers : {&run.x, &run.w})
    for (float& v : *numbers) v = float_of(rounded_to_upper(bits_of(v)));
  run.x[run.x.size() / 3] = kInfinity;
  run.compute_exactly();
  const std::vector<float> made = run.on_tiles(1, {}, Element::BFloat16);
  for (size_t i = 0; i < made.size(); i++)
    if (std::isfinite(run.exact[i]))
      ASSERT_NEAR(made[i], run.exact[i], 4e-3 * std::fabs(run.exact[i]) + 1e-6 * run.magnitudes[i]) << i;
    else if (std::isnan(run.exact[i]))
      ASSERT_TRUE(std::isnan(made[i])) << i;
    else
      ASSERT_EQ(made[i], run.exact[i]) << i;
}

// The unit takes subnormal numbers for zeros: of a number below 2^-110 the lowest term may be lost, which is less than
// 2^-126 of it; products and sums below 2^-126 are lost, too. Nothing else is.
TEST_P(Tiles, TinyNumbersLoseLessThanTheLeastNormal) {
  for (const int exponent : {-100, -115, -124, -135}) {
    Convolved run(GetParam(), 17);
    for (float& v : run.x) v = std::ldexp(v, exponent);
    run.compute_exactly();
    const std::vector<float> made = run.on_tiles(3);
    const double depth = static_cast<double>(GetParam().shape.in * count(GetParam().shape.kernel));
    for (size_t i = 0; i < made.size(); i++)
      ASSERT_NEAR(made[i], run.exact[i], 3e-7 * run.magnitudes[i] + depth * 12 * 0x1p-126) << exponent << " at " << i;
  }
}

TEST(TileWeights, ThatAreNotFiniteAreNotTaken) {
  const TileConvolution tiles(rows(4, 8, 8), order_of('l', 8, 4), order_of('l', 8, 4), 3, {}, 1, TileUnit::Emulated);
  for (const float value : {1.0f, 3.38e38f, 3.402e38f, kInfinity, static_cast<float>(NAN)}) {
    std::vector<float> w(64, 1.0f);
    w[37] = -value;
    EXPECT_EQ(tiles.takes({w.data(), 8, 1, 1}), value < 3.39e38f) << value;
  }
}

// Whether the other matrix's rows lie apart, or its columns side by side: of what lies between nothing is looked at.
TEST(TileWeights, ArePackedFromAnyOrder) {
  constexpr int64_t kIn = 40, kOut = 50, kLine = 70;
  for (const int terms : {1, 2, 3}) {
    const TileConvolution tiles(rows(4, kIn, kOut), order_of('l', kIn, 4), order_of('l', kOut, 4), terms, {}, 2,
                                TileUnit::Emulated);
    std::mt19937 random(7);
    std::vector<float> dense(kOut * kIn), turned(kIn * kOut), apart(kOut * kLine, NAN);
    for (int64_t o = 0; o < kOut; o++)
      for (int64_t i = 0; i < kIn; i++) {
        const float value = normal(random);
        dense[static_cast<size_t>(o * kIn + i)] = value;
        turned[static_cast<size_t>(i * kOut + o)] = value;
        apart[static_cast<size_t>(o * kLine + i)] = value;
      }
    Lines<char> first(tiles.packed_bytes()), second(tiles.packed_bytes(), 0x3d), third(tiles.packed_bytes(), 0x3d);
    tiles.pack({dense.data(), kIn, 1, 1}, first.data);
    for (const auto& [weights, packed] : {std::pair(TileWeights{turned.data(), 1, kOut, 1}, second.data),
                                          std::pair(TileWeights{apart.data(), kLine, 1, 1}, third.data)}) {
      EXPECT_TRUE(tiles.takes(weights));
      tiles.pack(weights, packed);
      EXPECT_EQ(std::memcmp(packed, first.data, tiles.packed_bytes()), 0) << terms;
    }
    apart[static_cast<size_t>(3 * kLine + 2)] = kInfinity;
    EXPECT_FALSE(tiles.takes({apart.data(), kLine, 1, 1}));
  }
}

// What vectors split, by the code that splits any numbers.
TEST(Terms, AreTheSameInVectors) {
  std::mt19937 random(std::random_device{}());
  std::vector<float> numbers;
  for (int i = 0; i < 4096; i++) {
    float value = float_of(static_cast<uint32_t>(random()));
    if ((bits_of(value) & kMagnitude) >= kRoundsToInfinity) value = 1.0f;
    numbers.push_back((bits_of(value) & kExponent) == 0 ? 0.0f : value);
  }
  constexpr int kPositions = 256, kLine = 3 * kTileDepth, kLongLine = 4 * kTileDepth;
  for (const int64_t channel : {1, 7})
    for (const int channels : {32, 29, 16, 5, 0}) {
      Lines<uint16_t> fast(kPositions * kLine * 2, 0), all(kPositions * kLongLine * 2, 0);
      TermRow row{numbers.data(), channel == 1 ? 9 : 1, channel, 500, kPositions, channels, fast.data, kLine};
      const uint32_t largest = split_function(3)(row);
      EXPECT_LT(largest, kRoundsToInfinity);
      row.to = all.data;
      row.line = kLongLine;
      split_all(3, row);
      for (int i = 0; i < kPositions; i++)
        for (int t = 0; t < kLine; t++) {
          const uint16_t a = fast[static_cast<size_t>(i * kLine + t)], b = all[static_cast<size_t>(i * kLongLine + t)];
          ASSERT_EQ(a, b) << "term " << t << " at " << i;
        }
    }
}

// Where the processor has the unit: it computes what the code here does, to the bit.
TEST(TileUnits, ComputeTheSame) {
  if (!has_amx()) GTEST_SKIP() << "no AMX here";
  std::mt19937 random(std::random_device{}());
  constexpr int64_t kBlocks = 3, kTaps = 2, kLine = 4 * kTileDepth, kRow = kTileRows * kLine, kBlock = 3 * kRow;
  const int64_t taps[kTaps] = {0, 2};
  Lines<uint16_t> x(kBlocks * kBlock * 2), w(2 * kBlocks * kTaps * 3 * kTileElements * 2);
  for (auto* numbers : {&x, &w})
    for (size_t i = 0; i < numbers->size; i++) (*numbers)[i] = static_cast<uint16_t>(bits_of(mixed(random)) >> 16);
  for (int terms = 1; terms <= 3; terms++)
    for (const TileTerms which : {TileTerms::All, TileTerms::Lower, TileTerms::First})
      for (const int rows : {1, 2})
        for (const int columns : {1, 2})
          for (const bool again : {false, true}) {
            Lines<float> a(4 * 256 * 4), b(4 * 256 * 4);
            for (const TileUnit unit : {TileUnit::Amx, TileUnit::Emulated}) {
              TileProduct p{};
              p.x = x.data, p.line = kLine, p.row = kRow, p.again = again ? terms * kTileDepth : 0;
              p.block = kBlock, p.taps = taps, p.tap_count = kTaps, p.blocks = kBlocks, p.w = w.data;
              p.sums = unit == TileUnit::Amx ? a.data : b.data;
              begin_tiles(unit, kTileRows);
              multiply_function(unit, terms, which, rows, columns)(p);
              p.continues = true;
              multiply_function(unit, terms, which, rows, columns)(p);
              end_tiles(unit);
            }
            for (int i = 0; i < rows * columns * 256; i++)
              ASSERT_EQ(bits_of(a[static_cast<size_t>(i)]), bits_of(b[static_cast<size_t>(i)]))
                  << terms << rows << columns;
          }
}

}  // namespace
}  // namespace gopt_runtime
