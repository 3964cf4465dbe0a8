// Convolutions and products on AMX tiles beside oneDNN's, one by one: in fp32 as they come (direct), by
// Winograd's algorithm (gopt_winograd.h) and panels of weights (gopt_panels.h), as sums of two bf16 numbers (bf16x3),
// in bf16. In turns, what is read and the weights brought back from beyond the core's own cache before each run, as in
// a model; medians in microseconds, and the largest error over the largest result, against float64. It is built from
// what goes out with a model:
//   g++ -O3 -std=c++17 -march=native -fno-math-errno -fno-trapping-math -fopenmp -I codegen/cpu/runtime
//     -I include/gopt/runtime bench/cpu_tiles.cc codegen/cpu/runtime/gopt_{dnnl,convolution,convolution_call}.cc
//     codegen/cpu/runtime/gopt_{product_call,split,planar,channel_lanes,taps,unfolded,pooling,attention_rows,attention_tiles,integer,
//     integer_sums,integer_call,rows,panels,panels_call,blocks,blocks_call,winograd,tiles,tiles_weights,tiles_source,
//     tiles_result,tiles_call,tile_kernel,tile_vectors}.cc -ldnnl
// usage: cpu_tiles [THREADS] [ROUNDS] [ours]      ours: without oneDNN's
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gopt_amx.h"
#include "gopt_dnnl.h"
#include "gopt_few_rows.h"
#include "gopt_memory.h"
#include "gopt_terms.h"
#include "gopt_timing.h"

#if GOPT_HAS_AMX
#include <immintrin.h>
#endif

using namespace gopt_runtime;

namespace {

struct Shape {
  const char* name;
  int64_t rows, in, out;                              // of a product; of a convolution rows is 0
  int64_t size = 0, kernel = 1, stride = 1, pad = 0;  // of both sides
  int64_t result() const { return rows ? rows : (size + 2 * pad - kernel) / stride + 1; }
  int64_t positions() const { return rows ? rows : result() * result(); }
};
const Shape kShapes[] = {
    {"bert 128x768x768", 128, 768, 768},
    {"bert 128x768x3072", 128, 768, 3072},
    {"bert 128x3072x768", 128, 3072, 768},
    {"vit 197x768x3072", 197, 768, 3072},
    {"vit 197x3072x768", 197, 3072, 768},
    {"16x768x768", 16, 768, 768},
    {"8x1024x1024", 8, 1024, 1024},
    {"1x4096x1000", 1, 4096, 1000},
    {"512x1024x1024", 512, 1024, 1024},
    {"resnet 64 56 3x3", 0, 64, 64, 56, 3, 1, 1},
    {"resnet 128 28 3x3", 0, 128, 128, 28, 3, 1, 1},
    {"resnet 256 14 3x3", 0, 256, 256, 14, 3, 1, 1},
    {"resnet 512 7 3x3", 0, 512, 512, 7, 3, 1, 1},
    {"resnet 128 56 3x3/2", 0, 128, 128, 56, 3, 2, 1},
    {"resnet 64-256 56 1x1", 0, 64, 256, 56},
    {"resnet 256-64 56 1x1", 0, 256, 64, 56},
    {"resnet 512-128 28 1x1", 0, 512, 128, 28},
    {"resnet 256-1024 14 1x1", 0, 256, 1024, 14},
    {"resnet 2048-512 7 1x1", 0, 2048, 512, 7},
    {"resnet 256-512 56 1x1/2", 0, 256, 512, 56, 1, 2},
    {"squeezenet 16-64 55 3x3", 0, 16, 64, 55, 3, 1, 1},
    {"squeezenet 128-16 55 1x1", 0, 128, 16, 55},
    {"vgg 256 56 3x3", 0, 256, 256, 56, 3, 1, 1},
    {"mobilenet 96-24 56 1x1", 0, 96, 24, 56},
    {"mobilenet 160-960 7 1x1", 0, 160, 960, 7},
};

struct Way {
  const char* name;
  std::function<void(Convolution&)> convolve;
  std::function<void(MatrixProduct&)> multiply;
  bool halves, ours;
  bool last = false;  // channels last, else in blocks
};
template <class D>
void in_halves(D& d) {
  d.operands = d.result = Element::BFloat16;
}
std::vector<Way> ways() {
  const auto tiles = [](int terms, bool halves) {
    const auto on = [=](auto& d) {
      d.tile_terms = terms;
      if (halves) in_halves(d);
    };
    return std::pair<std::function<void(Convolution&)>, std::function<void(MatrixProduct&)>>(on, on);
  };
  const auto own = [](const char* name, auto pair, bool halves) {
    return Way{name, pair.first, pair.second, halves, true};
  };
  const auto split = [](auto& d) { d.arithmetic = Arithmetic::Split; };
  const auto halves = [](auto& d) { in_halves(d); };
  const auto last = [](auto way) {
    return [way](Convolution& c) {
      way(c);
      c.src_order = c.dst_order = Order::ChannelsLast;
    };
  };
  const auto panels = [](Convolution& c) { c.method = Method::Panels; };
  return {{"fp32", [](Convolution&) {}, [](MatrixProduct&) {}, false, false},
          {"winograd", [](Convolution& c) { c.method = Method::Winograd; }, nullptr, false, true},
          {"few-rows", nullptr, [](MatrixProduct& m) { m.few_rows = m.src[0] <= kMostRows; }, false, true},
          {"panels", panels, [](MatrixProduct& m) { m.panels = true; }, false, true},
          {"panels-last", last(panels), nullptr, false, true, true},
          {"bf16x3", split, split, false, false},
          {"bf16", halves, halves, true, false},
          {"bf16x3-last", last(split), nullptr, false, false, true},
          {"bf16-last", last(halves), nullptr, true, false, true},
          own("tiles-x6", tiles(3, false), false),
          own("tiles-x3", tiles(2, false), false),
          own("tiles-bf16", tiles(1, true), true)};
}

float to_half(float v) { return float_of(rounded_to_upper(bits_of(v))); }

// One way of a shape, with its memory.
class Candidate {
 public:
  Candidate(const Way& way, const Shape& s, int threads, const std::vector<float>& x, const std::vector<float>& w)
      : way_(way),
        s_(s),
        library_(threads, packed_),
        src_(Bytes(x.size() * 4 + 4096)),
        dst_(Bytes(places(s.out) * 4)),
        w_(Bytes(w.size() * 4)),
        x_(x) {
    if (way.halves)
      for (size_t i = 0; i < w.size(); i++) half(w_.data(), i) = static_cast<uint16_t>(bits_of(to_half(w[i])) >> 16);
    else
      std::memcpy(w_.data(), w.data(), w.size() * 4);
    if (s.rows) {
      MatrixProduct m;
      m.src = {s.rows, s.in}, m.weights = {s.in, s.out}, m.dst = {s.rows, s.out};
      m.src_strides = {s.in, 1}, m.weight_strides = {s.out, 1};
      m.constant_weights = true;
      m.posts.push_back({PostKind::Relu});
      way.multiply(m);
      library_.add(m, src_.data(), w_.data(), nullptr, dst_.data());
    } else {
      Convolution c;
      c.src = {1, s.in, s.size, s.size}, c.weights = {s.out, s.in, s.kernel, s.kernel};
      c.dst = {1, s.out, s.result(), s.result()};
      c.strides = {s.stride, s.stride}, c.dilations = {1, 1}, c.pads = {s.pad, s.pad};
      c.src_order = c.dst_order = Order::Blocked16;
      c.posts.push_back({PostKind::Relu});
      way.convolve(c);
      library_.add(c, src_.data(), w_.data(), nullptr, dst_.data());
    }
    library_.finish();
  }

  // Sources are written as the kernel before it would.
  void refresh() {
    if (way_.halves)
      for (size_t i = 0; i < x_.size(); i++)
        half(src_.data(), placed(i)) = static_cast<uint16_t>(bits_of(to_half(x_[i])) >> 16);
    else if (way_.last)
      for (size_t i = 0; i < x_.size(); i++) reinterpret_cast<float*>(src_.data())[placed(i)] = x_[i];
    else
      std::memcpy(src_.data(), x_.data(), x_.size() * 4);
  }
  void run() { library_.run(0); }
  float at(int64_t position, int64_t channel) {
    const size_t i = static_cast<size_t>(s_.rows     ? position * s_.out + channel
                                         : way_.last ? position * s_.out + channel
                                                     : (channel / 16 * s_.positions() + position) * 16 + channel % 16);
    if (way_.halves) return float_of(static_cast<uint32_t>(half(dst_.data(), i)) << 16);
    return reinterpret_cast<const float*>(dst_.data())[i];
  }
  const Way& way() const { return way_; }
  std::vector<double> times;

 private:
  using Bytes = Block;
  // Of an element of blocks; those that fill them have none of their own.
  size_t placed(size_t i) const {
    if (!way_.last) return i;
    const int64_t at = static_cast<int64_t>(i), positions = s_.size * s_.size,
                  channel = at / 16 / positions * 16 + at % 16;
    return static_cast<size_t>(at / 16 % positions * s_.in + channel);
  }
  size_t places(int64_t channels) const {
    return static_cast<size_t>(s_.positions() * (s_.rows ? channels : (channels + 15) / 16 * 16));
  }
  static uint16_t& half(char* data, size_t i) { return reinterpret_cast<uint16_t*>(data)[i]; }
  const Way& way_;
  const Shape& s_;
  PackedWeights packed_;
  Library library_;
  Block src_, dst_, w_;
  const std::vector<float>& x_;
};

// Errors at some places, over the largest result there.
std::string errors(const Shape& s, std::vector<std::unique_ptr<Candidate>>& all, const std::vector<float>& x,
                   const std::vector<float>& w) {
  std::mt19937 random(5);
  std::vector<double> worst(all.size(), 0);
  double largest = 0;
  for (int sample = 0; sample < 1000; sample++) {
    const int64_t position = static_cast<int64_t>(random()) % s.positions(), o = static_cast<int64_t>(random()) % s.out;
    double sum = 0;
    if (s.rows) {
      for (int64_t i = 0; i < s.in; i++)
        sum += static_cast<double>(x[static_cast<size_t>(position * s.in + i)]) * w[static_cast<size_t>(i * s.out + o)];
    } else {
      const int64_t top = position / s.result() * s.stride - s.pad, left = position % s.result() * s.stride - s.pad;
      for (int64_t i = 0; i < s.in; i++)
        for (int64_t a = 0; a < s.kernel; a++)
          for (int64_t b = 0; b < s.kernel; b++) {
            const int64_t y = top + a, z = left + b;
            if (y < 0 || z < 0 || y >= s.size || z >= s.size) continue;
            sum += static_cast<double>(x[static_cast<size_t>(((i / 16 * s.size + y) * s.size + z) * 16 + i % 16)]) *
                   w[static_cast<size_t>(((o * s.in + i) * s.kernel + a) * s.kernel + b)];
          }
    }
    largest = std::max(largest, sum);
    for (size_t k = 0; k < all.size(); k++)
      worst[k] = std::max(worst[k], std::fabs(all[k]->at(position, o) - std::max(0.0, sum)));
  }
  std::string text;
  char number[32];
  for (const double e : worst) {
    std::snprintf(number, sizeof number, " %.1e", e / largest);
    text += number;
  }
  return text;
}

double median(std::vector<double>& v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void measure(const Shape& s, int threads, int rounds, bool ours) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const int64_t taps = s.kernel * s.kernel, filled = s.rows ? s.in : (s.in + 15) / 16 * 16;
  std::vector<float> x(static_cast<size_t>((s.rows ? s.rows : s.size * s.size) * filled)),
      w(static_cast<size_t>(s.out * s.in * taps));
  for (float& v : x) v = normal(random);
  for (float& v : w) v = normal(random) / std::sqrt(static_cast<float>(s.in * taps));
  static const std::vector<Way> kWays = ways();
  std::vector<std::unique_ptr<Candidate>> all;
  for (const Way& way : kWays) {
    const bool can = s.rows ? way.multiply && (std::strcmp(way.name, "few-rows") != 0 || s.rows <= kMostRows)
                            : way.convolve &&
                                  (std::strcmp(way.name, "winograd") != 0 || (s.kernel == 3 && s.stride == 1)) &&
                                  (std::strncmp(way.name, "panels", 6) != 0 || s.kernel == 1);
    if (can && (way.ours || !ours)) all.push_back(std::make_unique<Candidate>(way, s, threads, x, w));
  }
  for (int round = 0; round < rounds; round++)
    for (auto& c : all) {
      c->refresh();
      forget_weights(threads);
      const double start = now_ms();
      c->run();
      c->times.push_back((now_ms() - start) * 1e3);
    }
  const std::string worst = errors(s, all, x, w);
  const double operations = 2.0 * static_cast<double>(s.positions() * s.out * s.in * taps);
  std::printf("t%d %-25s", threads, s.name);
  double first = 0;
  for (auto& c : all) {
    const double us = median(c->times);
    if (first == 0) first = us;
    std::printf(" | %s %.0f (%.2fx, %.0f GF/s)", c->way().name, us, first / us, operations / us / 1e3);
  }
  std::printf(" | errors%s\n", worst.c_str());
  std::fflush(stdout);
}

// What the units do at most, in GFLOP/s.
#if GOPT_HAS_AMX
__attribute__((target("amx-tile,amx-bf16"))) void multiply_tiles(int times) {
  struct alignas(64) {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t bytes[16] = {};
    uint8_t rows[16] = {};
  } config;
  for (int t = 0; t < 8; t++) config.bytes[t] = 64, config.rows[t] = 16;
  __asm__ volatile("" : : "r"(&config) : "memory");  // g++ does not know that all of it is read
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int i = 0; i < times; i++) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}
void peak(int threads) {
  constexpr int kTimes = 1000000;
  double best = 1e30;
  for (int round = 0; round < 5; round++) {
    const double start = now_ms();
#pragma omp parallel num_threads(threads)
    multiply_tiles(kTimes);
    best = std::min(best, now_ms() - start);
  }
  std::printf("t%d tiles: %.0f GFLOP/s in bf16\n", threads, 4.0 * 16384 * kTimes * threads / best / 1e6);
}
#endif

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1, rounds = argc > 2 ? std::atoi(argv[2]) : 21;
  const bool ours = argc > 3 && std::string(argv[3]) == "ours";
#if GOPT_HAS_AMX
  if (has_amx())
    peak(threads);
  else
#endif
    std::puts("no AMX: what is named tiles is oneDNN's");
  for (const Shape& s : kShapes) measure(s, threads, rounds, ours);
}
