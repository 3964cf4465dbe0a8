// The tile kernels themselves, run on the processor: single ones, groups with pools, depths divided over a cluster,
// convolutions in groups; compared with double precision. Prints what differs; the exit status is 1 where something
// does.
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "device.h"
#include "gopt_channel_tiles.cuh"
#include "gopt_epilogue.cuh"
#include "gopt_patches.cuh"
#include "gopt_quantized_vectors.cuh"
#include "gopt_register_result.cuh"
#include "gopt_tiles.cuh"
#include "gopt_vectors.cuh"
#include "gopt_warpgroups.cuh"
#include "gopt_warpgroups.h"

namespace {

using namespace gopt_runtime;
using namespace gopt_runtime::tiles;

struct Window {
  int height, width, step, top, left;
  int step_of_line = 0;  // where it is another one
  int along() const { return step_of_line > 0 ? step_of_line : step; }
};
enum class Kind { Product, Depthwise, Largest, Mean, MeanOfAll };
struct Planes {  // of a volume, and how a window goes over them
  int all = 1, window = 1, step = 1, apart = 1, before = 0;
};

struct Case {
  int images, height, width, channels, columns;
  Window window;
  bool has_bias, has_addend;
  ActivationKind activation;
  int more_in_line;  // of the result
  Kind kind = Kind::Product;
  Planes planes = {};
};

std::vector<gopt_half> draw(size_t count) {
  static std::mt19937 random(5);
  std::vector<gopt_half> values(count);
  for (gopt_half& v : values) v = gopt_half(std::normal_distribution<float>()(random));
  return values;
}

int positions(int extent, int window, int step, int pad) { return (extent + 2 * pad - window) / step + 1; }

constexpr float kUnwritten = 77, kAlpha = -0.75F, kBeta = 1.5F;

double activated(ActivationKind kind, double x) {
  switch (kind) {
    case ActivationKind::Relu: return std::max(x, 0.0);
    case ActivationKind::Clip: return std::min(std::max(x, double{kAlpha}), double{kBeta});
    case ActivationKind::Sigmoid: return 1 / (1 + std::exp(-x));
    case ActivationKind::Swish: return x / (1 + std::exp(-kAlpha * x));
    case ActivationKind::GeluErf: return x / 2 * std::erfc(-x * std::sqrt(0.5));
    case ActivationKind::GeluTanh: return x / 2 * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
    default: return x;
  }
}

struct Drawn {
  explicit Drawn(const Case& c) : of(c) {
    const Window& w = c.window;
    p.height = c.height, p.width = c.width, p.channels = c.channels, p.columns = c.columns;
    p.out_height = positions(c.height, w.height, w.step, w.top);
    p.out_width = positions(c.width, w.width, w.along(), w.left);
    p.kernel_height = w.height, p.kernel_width = w.width;
    p.strides[0] = w.step, p.strides[1] = w.along(), p.pads[0] = w.top, p.pads[1] = w.left;
    p.planes = c.planes.all, p.kernel_planes = c.planes.window, p.stride_of_planes = c.planes.step;
    p.dilation_of_planes = c.planes.apart, p.pad_of_planes = c.planes.before;
    p.out_planes = positions(p.planes, (c.planes.window - 1) * c.planes.apart + 1, c.planes.step, c.planes.before);
    p.rows = c.images * p.out_planes * p.out_height * p.out_width;
    p.depth = c.channels * w.height * w.width;
    p.src_line = c.channels, p.dst_line = c.columns + c.more_in_line, p.addend_line = c.columns;
    p.line_of_weights = c.kind == Kind::Depthwise ? c.planes.window * w.height * w.width : p.depth;
    p.result = Element::Float16, p.activation = {c.activation, kAlpha, kBeta}, p.has_constant_weights = true;
    p.counts_outside = c.kind == Kind::MeanOfAll;
    p.is_aligned = c.kind != Kind::Product || (c.columns % 4 == 0 && p.dst_line % 4 == 0);
    src = draw(static_cast<size_t>(c.images) * c.planes.all * c.height * c.width * c.channels);
    weights = draw(static_cast<size_t>(c.columns) * std::max<int64_t>(p.depth, p.line_of_weights));
    bias = draw(c.columns), addend = draw(static_cast<size_t>(p.rows) * c.columns);
    dst.assign(static_cast<size_t>(p.rows) * p.dst_line, gopt_half(kUnwritten));
    p.src = src.data(), p.weights = weights.data(), p.dst = dst.data();
    p.bias = c.has_bias ? bias.data() : nullptr, p.addend = c.has_addend ? addend.data() : nullptr;
  }

  // Without window, bias and all that follows.
  double product(int row, int column) const {
    double sum = 0;
    for (int k = 0; k < p.channels; k++)
      sum += static_cast<double>(static_cast<float>(src[static_cast<size_t>(row) * p.channels + k])) *
             static_cast<float>(weights[static_cast<size_t>(column) * p.depth + k]);
    return sum;
  }

  double expected(int row, int column) const {
    const int area = p.out_height * p.out_width, plane = row / area, y = row % area / p.out_width;
    const int x = row % p.out_width, image = plane / p.out_planes;
    const int front = plane % p.out_planes * p.stride_of_planes - p.pad_of_planes;
    double result = of.kind == Kind::Largest ? -INFINITY : 0;
    int inside = 0;
    for (int tap_line = 0; tap_line < p.kernel_planes * p.kernel_height; tap_line++)
      for (int kx = 0; kx < p.kernel_width; kx++) {
        const int kz = tap_line / p.kernel_height, ky = tap_line % p.kernel_height;
        const int iz = front + kz * p.dilation_of_planes;
        const int iy = y * p.strides[0] - p.pads[0] + ky, ix = x * p.strides[1] - p.pads[1] + kx;
        if (iz < 0 || iy < 0 || ix < 0 || iz >= p.planes || iy >= p.height || ix >= p.width) continue;
        inside++;
        const int line = (image * p.planes + iz) * p.height + iy;
        const gopt_half* pixel = &src[static_cast<size_t>(line * p.width + ix) * p.channels];
        const size_t tap = static_cast<size_t>(column) * p.depth + (ky * p.kernel_width + kx) * p.channels;
        if (of.kind == Kind::Largest) result = std::max<double>(result, static_cast<float>(pixel[column]));
        if (of.kind == Kind::Mean || of.kind == Kind::MeanOfAll) result += static_cast<float>(pixel[column]);
        if (of.kind == Kind::Depthwise)
          result += static_cast<double>(static_cast<float>(pixel[column])) *
                    static_cast<float>(weights[column * p.line_of_weights + tap_line * p.kernel_width + kx]);
        for (int k = 0; of.kind == Kind::Product && k < p.channels; k++)
          result += static_cast<double>(static_cast<float>(pixel[k])) * static_cast<float>(weights[tap + k]);
      }
    if (of.kind == Kind::Mean) return result / inside;
    if (of.kind == Kind::MeanOfAll) return result / (p.kernel_height * p.kernel_width);
    if (of.kind == Kind::Largest) return result;
    if (p.bias) result += static_cast<float>(bias[column]);
    if (p.addend) result += static_cast<float>(addend[static_cast<size_t>(row) * of.columns + column]);
    return activated(of.activation, result);
  }

  // Of the largest result; what lies between lines is as it was.
  double error() const {
    double most = 0, largest = 1e-9;
    for (int row = 0; row < p.rows; row++)
      for (int column = 0; column < p.dst_line; column++) {
        const float found = static_cast<float>(dst[static_cast<size_t>(row) * p.dst_line + column]);
        if (column >= of.columns && found != kUnwritten) return INFINITY;
        if (column >= of.columns) continue;
        const double wanted = expected(row, column), apart = std::abs(found - wanted);
        if (std::isinf(wanted) && found == wanted) continue;
        most = apart <= most || std::isnan(most) ? most : apart;  // a NaN is kept
        largest = std::max(largest, std::abs(wanted));
      }
    return most / largest;
  }

  Case of;
  TileProblem p;
  std::vector<gopt_half> src, weights, bias, addend, dst;
};

using A = ActivationKind;
const Case kTogether[] = {{2, 5, 6, 16, 24, {1, 1, 1, 0, 0}, true, false, A::Relu, 48},
                          {2, 5, 6, 16, 16, {3, 3, 1, 1, 1}, false, false, A::None, 16, Kind::Largest},
                          {2, 5, 6, 16, 72, {3, 3, 1, 1, 1}, false, true, A::None, 0},
                          {1, 7, 7, 24, 24, {5, 2, 2, 2, 1}, false, false, A::None, 0, Kind::Mean},
                          {1, 9, 7, 8, 40, {5, 5, 2, 2, 2}, true, true, A::GeluErf, 8},
                          {1, 7, 7, 24, 24, {3, 3, 1, 1, 1}, false, false, A::None, 0, Kind::MeanOfAll},
                          {1, 6, 5, 24, 30, {3, 1, 1, 1, 0}, true, false, A::Sigmoid, 0}};
const Case kAlone[] = {{2, 5, 6, 16, 72, {3, 3, 1, 1, 1}, true, true, A::GeluErf, 8},
                       {1, 1, 70, 136, 144, {1, 1, 1, 0, 0}, true, true, A::Relu, 0},
                       {1, 1, 33, 64, 37, {1, 1, 1, 0, 0}, true, true, A::None, 3}};

template <class S>
int tiles_of(TileProblem& p) {
  p.row_tiles = (p.rows + S::kRows - 1) / S::kRows;
  return p.row_tiles * ((p.columns + S::kColumns - 1) / S::kColumns);
}

int failures = 0;
void expect_right(const Drawn& drawn, const std::string& name) {
  constexpr double kOfHalves = 1e-3;
  const double error = drawn.error();
  if (error <= kOfHalves) return;
  std::printf("%s: %d by %d of %d: error %g\n", name.c_str(), drawn.p.rows, drawn.of.columns, drawn.p.depth, error);
  failures++;
}

template <class S>
void run(const std::string& name, unsigned split) {
  for (const Case& c : kAlone) {
    Drawn drawn(c);
    const auto tiles = static_cast<unsigned>(tiles_of<S>(drawn.p));
    emulation::launch(dim3(tiles, split), S::kThreads,
                      [&] { tile_kernel<Half, Right::Columns, Copies::Chunks, S, Before::Nothing>(drawn.p); });
    expect_right(drawn, name);
  }
  std::vector<Drawn> together(std::begin(kTogether), std::end(kTogether));
  TileProblems all;
  int blocks = 0, number = 0;
  for (Drawn& drawn : together) {
    constexpr int kLanes = 8;
    const int of_block = S::kThreads * static_cast<int>(split), threads = drawn.p.rows * (drawn.p.channels / kLanes);
    const bool is_pool = drawn.of.kind != Kind::Product;
    all.work[number] = !is_pool ? Work::Tiles : drawn.of.kind == Kind::Largest ? Work::Largest : Work::Mean;
    all.tiles[number] = tiles_of<S>(drawn.p);
    blocks += is_pool ? (threads + of_block - 1) / of_block : all.tiles[number];
    all.end[number] = blocks;
    all.problem[number++] = drawn.p;
  }
  emulation::launch(dim3(static_cast<unsigned>(blocks), split), S::kThreads,
                    [&] { tile_group_kernel<Half, Right::Columns, Copies::Chunks, S>(all); });
  for (const Drawn& drawn : together) expect_right(drawn, name + " in a group");
}

// What is done to the source as it is multiplied: of images that end within a tile and within a fragment, of channels
// that end within a slice, over a divided depth; by the tile in the place of one of warpgroups, too.
template <class S, Before kBefore>
void run_prologue(const std::string& name, unsigned split) {
  using E = typename S::Elsewhere;
  constexpr int kOfSlice = 64;
  for (const Case& c : {Case{3, 5, 7, 72, 40, {1, 1, 1, 0, 0}, true, true, A::Relu, 8},
                        Case{2, 9, 8, 152, 72, {1, 1, 2, 0, 0}, true, false, A::None, 0},
                        Case{1, 7, 7, 8, 24, {1, 1, 1, 0, 0}, false, false, A::None, 0},
                        Case{2, 3, 5, 12, 16, {1, 1, 1, 0, 0}, true, false, A::None, 0}}) {
    Drawn drawn(c);
    const std::vector<gopt_half> before = drawn.src;
    // Behind the last gate there may be anything.
    std::vector<gopt_half> gates = draw(static_cast<size_t>(c.images) * c.channels);
    gates.resize(gates.size() + kOfSlice, gopt_half(NAN));
    std::vector<float> lines(static_cast<size_t>(c.channels + kOfSlice - 1) / kOfSlice * kOfSlice * 2);
    for (size_t i = 0; i < 2 * static_cast<size_t>(c.channels); i++) lines[i] = static_cast<float>(draw(1)[0]);
    WarpgroupProblem whole;
    TileProblem& p = whole.problem = drawn.p;
    p.src = before.data();
    p.prologue = {lines.data(), kAlpha, kBeta, gates.data(), p.out_height * p.out_width};
    for (size_t i = 0; i < before.size(); i++) {
      const size_t channel = i % c.channels, image = i / (static_cast<size_t>(c.height) * c.width * c.channels);
      const float x = static_cast<float>(before[i]);
      drawn.src[i] =
          gopt_half(kBefore == Before::Gates
                        ? x * static_cast<float>(gates[image * c.channels + channel])
                        : std::min(std::max(std::fma(x, lines[2 * channel], lines[2 * channel + 1]), kAlpha), kBeta));
    }
    const auto tiles = static_cast<unsigned>(tiles_of<E>(p));
    const auto run_with = [&](const std::string& way, auto kernel) {
      std::fill(drawn.dst.begin(), drawn.dst.end(), gopt_half(kUnwritten));
      emulation::launch(dim3(tiles, split), E::kThreads, kernel);
      expect_right(drawn, name + (kBefore == Before::Gates ? " with gates " : " normalized ") + way);
    };
    run_with("by one element after another",
             [&] { tile_kernel<Half, Right::Columns, Copies::Elements, E, kBefore>(p); });
    if (c.channels % 8 != 0) continue;
    run_with("by a tile", [&] { tile_kernel<Half, Right::Columns, Copies::Chunks, E, kBefore>(p); });
    run_with("in the place of warpgroups", [&] { warpgroup_kernel<Half, Right::Columns, S, kBefore>(whole); });
  }
}

// Convolutions in groups, of which runs are joined: by the tile in the place of one of warpgroups, which takes the
// weights as they lie; and with the weights that are written anew for warpgroups. Of a run there are several tiles of
// columns, or one, of which runs may fill a part where there is one.
struct CaseInGroups {
  Case dense;
  int groups, joined;
};
template <class S>
void run_groups(const std::string& name, unsigned split) {
  using E = typename S::Elsewhere;
  for (const auto& [c, groups, joined] :
       {CaseInGroups{{1, 5, 6, 192, 384, {3, 3, 1, 1, 1}, true, true, A::Relu, 0}, 12, 4},
        CaseInGroups{{1, 9, 9, 128, 256, {3, 3, 2, 1, 1}, true, false, A::None, 8}, 32, 16},
        CaseInGroups{{1, 5, 6, 128, 256, {3, 1, 1, 1, 0}, false, true, A::None, 0}, 64, 32},
        CaseInGroups{{1, 5, 6, 128, 512, {1, 3, 1, 0, 1}, true, false, A::Relu, 0}, 2, 1},
        CaseInGroups{{1, 7, 5, 32, 48, {3, 3, 1, 1, 1}, true, true, A::Relu, 0}, 4, 4}}) {
    Drawn drawn(c);
    const int channels = c.channels / groups, columns = c.columns / groups, runs = groups / joined,
              taps = c.window.height * c.window.width;
    std::vector<gopt_half> own;
    for (int i = 0; i < c.columns * drawn.p.depth; i++) {
      gopt_half& weight = drawn.weights[static_cast<size_t>(i)];
      if (i % c.channels / channels == i / drawn.p.depth / columns)
        own.push_back(weight);
      else
        weight = gopt_half(0.0F);
    }
    WarpgroupProblem whole;
    TileProblem& p = whole.problem = drawn.p;
    p.channels = channels * joined, p.columns = columns * joined, p.depth = p.channels * taps;
    p.batch[2] = runs, p.src_steps[2] = p.channels, p.dst_step = p.bias_step = p.columns;
    p.group_channels = channels, p.group_columns = columns, p.piece = std::gcd(16, channels * 2);
    const auto run_with = [&](const std::vector<gopt_half>& weights, int line, const std::string& way, auto kernel) {
      p.weights = weights.data(), p.line_of_weights = line, p.weight_steps[2] = int64_t{p.columns} * line;
      std::fill(drawn.dst.begin(), drawn.dst.end(), gopt_half(kUnwritten));
      emulation::launch(dim3(static_cast<unsigned>(tiles_of<E>(p)), split, static_cast<unsigned>(runs)), E::kThreads,
                        kernel);
      expect_right(drawn, name + " of " + std::to_string(groups) + " groups " + way);
    };
    run_with(own, channels * taps, "as they lie",
             [&] { warpgroup_kernel<Half, Right::Groups, S, Before::Nothing>(whole); });

    Convolution d;
    d.weights = {c.columns, channels, c.window.height, c.window.width};
    d.groups = groups, d.element = Element::Float16;
    std::vector<gopt_half> anew(static_cast<size_t>(c.columns) * p.depth, gopt_half(0.0F));
    for (int group = 0; group < groups; group++) {
      const WeightsOfGroup g = weights_of_group(d, joined, group);
      for (size_t line = 0; line < g.height; line++)
        std::memcpy(reinterpret_cast<char*>(anew.data()) + g.to + line * g.line,
                    reinterpret_cast<const char*>(own.data()) + g.from + line * g.width, g.width);
    }
    run_with(anew, p.depth, "written anew", [&] { warpgroup_kernel<Half, Right::Columns, S, Before::Nothing>(whole); });
  }
}

// Transposed convolutions: every remainder by the steps, taps that no position sees, pads beyond the window, volumes,
// groups; compared with what each position of the source adds to the result.
struct TransposedCase {
  int images, groups, channels, columns;  // of a group
  int src[3], kernel[3], steps[3], dilations[3], pads[3], more[3];
};
constexpr TransposedCase kTransposed[] = {
    {2, 1, 24, 40, {1, 5, 6}, {1, 4, 4}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 0, 0}},
    {1, 1, 64, 16, {1, 4, 7}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 0}},
    {1, 1, 16, 8, {1, 3, 5}, {1, 2, 2}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
    {1, 1, 16, 24, {1, 3, 5}, {1, 1, 2}, {1, 3, 4}, {1, 1, 1}, {0, 0, 0}, {0, 1, 1}},
    {1, 1, 40, 16, {1, 6, 9}, {1, 3, 5}, {1, 1, 3}, {1, 2, 1}, {0, 3, 4}, {0, 0, 1}},
    {2, 2, 32, 24, {1, 4, 4}, {1, 5, 5}, {1, 2, 2}, {1, 1, 1}, {0, 2, 0}, {0, 1, 1}},
    {1, 1, 16, 8, {1, 1, 11}, {1, 1, 16}, {1, 1, 8}, {1, 1, 1}, {0, 0, 4}, {0, 0, 0}},
    {1, 1, 16, 16, {1, 2, 2}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 2, 2}, {0, 0, 0}},
};
constexpr TransposedCase kTransposedByElements[] = {
    {1, 1, 13, 3, {1, 5, 4}, {1, 4, 4}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 0, 0}},
    {1, 2, 7, 5, {1, 3, 4}, {1, 3, 2}, {1, 2, 3}, {1, 1, 1}, {0, 1, 0}, {0, 0, 0}}};
// Taps apart between positions that are; pads that add at the border: by products over taps alone.
constexpr TransposedCase kTransposedApart[] = {
    {1, 1, 8, 3, {1, 4, 5}, {1, 3, 3}, {1, 2, 2}, {1, 2, 3}, {0, 1, 2}, {0, 0, 1}},
    {2, 2, 6, 5, {1, 3, 4}, {1, 2, 3}, {1, 3, 2}, {1, 1, 2}, {0, -1, -2}, {0, 1, 0}}};
constexpr TransposedCase kTransposedToFew[] = {
    {1, 1, 24, 1, {1, 5, 4}, {1, 5, 5}, {1, 2, 2}, {1, 1, 1}, {0, 2, 2}, {0, 1, 1}},
    {1, 2, 16, 3, {1, 3, 4}, {1, 3, 2}, {1, 2, 3}, {1, 1, 1}, {0, 1, 0}, {0, 0, 0}}};
constexpr TransposedCase kTransposedVolumes[] = {
    {1, 1, 16, 8, {3, 2, 4}, {2, 2, 2}, {2, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
    {2, 1, 8, 16, {2, 3, 3}, {3, 1, 4}, {2, 1, 3}, {1, 1, 1}, {1, 0, 2}, {1, 0, 1}}};

// The result of each number of a source times each number of the kernel, where it belongs.
std::vector<double> transposed(const TransposedCase& c, const int* out, const std::vector<gopt_half>& src,
                               const std::vector<gopt_half>& weights, const std::vector<gopt_half>& bias) {
  const int all = c.groups * c.columns, from = c.groups * c.channels;
  const auto taps = static_cast<size_t>(c.kernel[0] * c.kernel[1] * c.kernel[2]);
  std::vector<double> sums(static_cast<size_t>(c.images) * out[0] * out[1] * out[2] * all);
  for (size_t i = 0; i < sums.size(); i++) sums[i] = static_cast<float>(bias[i % static_cast<size_t>(all)]);
  for (int position = 0; position < c.images * c.src[0] * c.src[1] * c.src[2]; position++)
    for (size_t tap = 0; tap < taps; tap++) {
      int rest = position, rest_of_tap = static_cast<int>(tap), at[3];
      bool is_inside = true;
      for (int a = 2; a >= 0; a--) {
        at[a] = rest % c.src[a] * c.steps[a] - c.pads[a] + rest_of_tap % c.kernel[a] * c.dilations[a];
        is_inside &= at[a] >= 0 && at[a] < out[a];
        rest /= c.src[a], rest_of_tap /= c.kernel[a];
      }
      if (!is_inside) continue;
      const size_t to = ((static_cast<size_t>(rest) * out[0] + at[0]) * out[1] + at[1]) * out[2] + at[2];
      for (int k = 0; k < from; k++)
        for (int n = 0; n < c.columns; n++)
          sums[to * all + k / c.channels * c.columns + n] +=
              static_cast<double>(static_cast<float>(src[static_cast<size_t>(position) * from + k])) *
              static_cast<float>(weights[(static_cast<size_t>(k) * taps + tap) * c.columns + n]);
    }
  return sums;
}

template <class S, Copies kCopies, size_t kCount>
void run_transposed(const std::string& name, unsigned split, const TransposedCase (&cases)[kCount]) {
  for (const TransposedCase& c : cases) {
    int out[3];
    for (int a = 0; a < 3; a++)
      out[a] = (c.src[a] - 1) * c.steps[a] + (c.kernel[a] - 1) * c.dilations[a] + 1 - 2 * c.pads[a] + c.more[a];
    TileProblem p;
    p.planes = c.src[0], p.height = c.src[1], p.width = c.src[2];
    p.out_planes = out[0], p.out_height = out[1], p.out_width = out[2];
    p.kernel_planes = c.kernel[0], p.kernel_height = c.kernel[1], p.kernel_width = c.kernel[2];
    p.stride_of_planes = c.steps[0], p.strides[0] = c.steps[1], p.strides[1] = c.steps[2];
    p.dilations[0] = c.dilations[1], p.dilations[1] = c.dilations[2];
    p.pad_of_planes = c.pads[0], p.pads[0] = c.pads[1], p.pads[1] = c.pads[2];
    p.channels = c.channels, p.columns = c.columns, p.src_line = c.groups * c.channels;
    p.dst_line = p.addend_line = c.groups * c.columns;
    p.batch[2] = c.groups, p.src_steps[2] = c.channels, p.dst_step = p.bias_step = c.columns;
    p.result = Element::Float16, p.is_aligned = c.columns % 4 == 0;
    set_residues(p, c.images);
    const auto all = static_cast<size_t>(p.dst_line);
    const std::vector<gopt_half> src =
                                     draw(static_cast<size_t>(c.images) * c.src[0] * c.src[1] * c.src[2] * p.src_line),
                                 weights = draw(static_cast<size_t>(p.weight_steps[2]) * c.groups), bias = draw(all);
    std::vector<gopt_half> dst(static_cast<size_t>(c.images) * out[0] * out[1] * out[2] * all, gopt_half(kUnwritten));
    const std::vector<gopt_half> addend = draw(dst.size());
    p.src = src.data(), p.weights = weights.data(), p.bias = bias.data(), p.dst = dst.data();
    p.addend = addend.data(), p.activation = {A::Relu};
    const auto tiles = static_cast<unsigned>(tiles_of<S>(p));
    emulation::launch(dim3(tiles, split, static_cast<unsigned>(p.residues * c.groups)), S::kThreads,
                      [&] { tile_kernel<Half, Right::Taps, kCopies, S, Before::Nothing>(p); });
    const std::vector<double> wanted = transposed(c, out, src, weights, bias);
    double most = 0, largest = 1e-9;
    for (size_t i = 0; i < dst.size(); i++) {
      const double value = std::max(0.0, wanted[i] + static_cast<float>(addend[i]));
      const double apart = std::abs(static_cast<float>(dst[i]) - value);
      most = apart <= most || std::isnan(most) ? most : apart;  // a NaN is kept
      largest = std::max(largest, value);
    }
    constexpr double kOfHalves = 1e-3;
    if (most / largest <= kOfHalves) continue;
    std::printf("%s transposed, %d to %d channels, %dx%d in steps of %d, %d: error %g\n", name.c_str(), c.channels,
                c.columns, c.kernel[1], c.kernel[2], c.steps[1], c.steps[2], most / largest);
    failures++;
  }
}

// Taps of a transposed convolution that a product has made, added up: plain images, and with channels last.
template <size_t kCount>
void run_folds(bool is_last, const TransposedCase (&cases)[kCount]) {
  for (const TransposedCase& c : cases) {
    if (is_last && c.groups > 1) continue;
    gopt_runtime::Convolution of;
    int out[3];
    for (int a = 0; a < 3; a++)
      out[a] = (c.src[a] - 1) * c.steps[a] + (c.kernel[a] - 1) * c.dilations[a] + 1 - 2 * c.pads[a] + c.more[a];
    const int in = c.groups * c.channels, all = c.groups * c.columns;
    of.src = {c.images, in, c.src[1], c.src[2]}, of.dst = {c.images, all, out[1], out[2]};
    of.weights = {in, c.columns, c.kernel[1], c.kernel[2]};
    of.groups = c.groups, of.transposed = true, of.channels_last = is_last;
    for (int a = 0; a < 2; a++)
      of.strides[a] = c.steps[a + 1], of.dilations[a] = c.dilations[a + 1], of.pads[a] = c.pads[a + 1];
    const int positions = c.src[1] * c.src[2], kernel = c.kernel[1] * c.kernel[2];
    const std::vector<gopt_half> src = draw(static_cast<size_t>(c.images) * positions * in),
                                 weights = draw(static_cast<size_t>(in) * kernel * c.columns),
                                 bias = draw(static_cast<size_t>(all));
    std::vector<float> taps(static_cast<size_t>(c.images) * positions * kernel * all);
    for (int image = 0; image < c.images; image++)
      for (int position = 0; position < positions; position++)
        for (int tap = 0; tap < kernel; tap++)
          for (int n = 0; n < all; n++) {
            double sum = 0;
            for (int k = n / c.columns * c.channels; k < (n / c.columns + 1) * c.channels; k++)
              sum += static_cast<double>(
                         static_cast<float>(src[static_cast<size_t>(image * positions + position) * in + k])) *
                     static_cast<float>(weights[(static_cast<size_t>(k) * kernel + tap) * c.columns + n % c.columns]);
            const int at = is_last ? ((image * positions + position) * kernel + tap) * all + n
                                   : ((image * all + n) * kernel + tap) * positions + position;
            taps[static_cast<size_t>(at)] = static_cast<float>(sum);
          }
    const int area = out[1] * out[2], count = c.images * all * area;
    std::vector<gopt_half> dst(static_cast<size_t>(count), gopt_half(kUnwritten));
    const std::vector<gopt_half> addend = draw(dst.size());
    emulation::launch(dim3(2), 64, [&] {
      gopt_runtime::fold_kernel<gopt_half>(dst.data(), taps.data(), gopt_runtime::taps_of(of),
                                           static_cast<uint32_t>(count), bias.data(), addend.data(), {A::Relu});
    });
    const std::vector<double> wanted = transposed(c, out, src, weights, bias);  // with channels last
    double most = 0, largest = 1e-9;
    for (int i = 0; i < count; i++) {
      const int image = i / (area * all), rest = i % (area * all);
      const int position = is_last ? rest / all : rest % area, channel = is_last ? rest % all : rest / area;
      const double value = std::max(0.0, wanted[static_cast<size_t>((image * area + position) * all + channel)] +
                                             static_cast<float>(addend[static_cast<size_t>(i)]));
      const double apart = std::abs(static_cast<float>(dst[static_cast<size_t>(i)]) - value);
      most = apart <= most || std::isnan(most) ? most : apart;  // a NaN is kept
      largest = std::max(largest, value);
    }
    constexpr double kOfHalves = 1e-3;
    if (most / largest <= kOfHalves) continue;
    std::printf("taps%s added up, %d to %d channels, %dx%d in steps of %d, %d: error %g\n",
                is_last ? " of channels last" : "", in, all, c.kernel[1], c.kernel[2], c.steps[1], c.steps[2],
                most / largest);
    failures++;
  }
}

// What follows a library's call: whole chunks, biases beside each other or shared by some of them.
template <class T>
void run_epilogues(const std::string& name) {
  constexpr uint32_t kCount = gopt_runtime::kOfChunk<T>, kChannels = 2 * kCount, kInner = 3, kImages = 2;
  using Chunk = gopt_runtime::Chunk<T>;
  for (const uint32_t inner : {0u, kInner})
    for (const bool has_bias : {true, false})
      for (const bool has_addend : {true, false}) {
        const uint32_t of_bias = inner == 0 ? 1 : inner * kCount, count = kImages * kChannels * of_bias;
        const auto drawn = [](size_t n) {
          std::vector<Chunk> chunks(n / kCount);
          for (size_t i = 0; i < n; i++) chunks[i / kCount].elements[i % kCount] = T(static_cast<float>(draw(1)[0]));
          return chunks;
        };
        std::vector<Chunk> dst = drawn(count);
        const std::vector<Chunk> before = dst, addend = drawn(count), bias = drawn(kChannels);
        const auto at = [](const std::vector<Chunk>& v, uint32_t i) {
          return static_cast<float>(v[i / kCount].elements[i % kCount]);
        };
        for (const bool is_whole : {true, false}) {
          dst = before;
          const T* own_bias = has_bias ? bias[0].elements : nullptr;
          emulation::launch(dim3(2), 64, [&] {
            if (is_whole)
              gopt_runtime::chunk_epilogue_kernel<T>(dst.data(), count / kCount, own_bias, kChannels, inner,
                                                     has_addend ? addend.data() : nullptr, {A::LeakyRelu, kAlpha, 0});
            else
              gopt_runtime::epilogue_kernel<T>(dst[0].elements, count, own_bias, kChannels, of_bias,
                                               has_addend ? addend[0].elements : nullptr, {A::LeakyRelu, kAlpha, 0});
          });
          for (uint32_t i = 0; i < count; i++) {
            double wanted = at(before, i) + (has_bias ? at(bias, i / of_bias % kChannels) : 0.0f) +
                            (has_addend ? at(addend, i) : 0.0f);
            wanted = wanted < 0 ? static_cast<double>(kAlpha) * wanted : wanted;
            constexpr double kRounded = sizeof(T) == 4 ? 1e-6 : 1e-2;  // of bfloat16
            if (std::abs(at(dst, i) - wanted) <= kRounded * (1 + std::abs(wanted))) continue;
            std::printf("epilogue of %s, %u to a bias%s, element %u: %g, not %g\n", name.c_str(), of_bias,
                        is_whole ? ", chunks" : "", i, static_cast<double>(at(dst, i)), wanted);
            failures++;
            break;
          }
        }
      }
}

// Windows over channels, one position to a thread and several of a line: widths that fours fill or not, every edge.
template <gopt_runtime::Window kWindow, int kSide, int kAlong, int kStep>
void run_channels(const std::string& name, Kind kind) {
  for (const Case& c :
       {Case{2, 7, 14, 16, 16, {kSide, kSide, kStep, kSide / 2, kSide / 2}, true, true, A::Clip, 8, kind},
        Case{1, 9, 11, 24, 24, {kSide, kSide, kStep, 0, 0}, true, false, A::None, 0, kind},
        Case{1, 5, 21, 8, 8, {kSide, kSide, kStep, 1, kSide - 1}, false, false, A::Relu, 0, kind}}) {
    Drawn drawn(c);
    if (kind != Kind::Depthwise) drawn.p.bias = drawn.p.addend = nullptr;
    const int chunks = c.channels / 8, of_line = (drawn.p.out_width + kAlong - 1) / kAlong,
              threads = drawn.p.rows / drawn.p.out_width * of_line * chunks;
    emulation::launch(dim3(static_cast<unsigned>((threads + kChannelThreads - 1) / kChannelThreads)), kChannelThreads,
                      [&] { channel_kernel<kWindow, gopt_half, kSide, kAlong, kStep>(drawn.p); });
    expect_right(drawn, name + " over channels");
  }
}

// Rectangles that end within the result or beyond it, channels that fill a block or not, lines of memory that begin
// anywhere; with weights that are infinite, which the other way of adding is for. Of volumes planes of the window lie
// inside or not.
template <int kHeight, int kWidth, int kStep, int kAlong, int kBytes, int kPlanes = 1>
void run_rectangles(const std::string& name, const Planes& planes = {}) {
  using S = ChannelTileShape<gopt_half, kPlanes, kHeight, kWidth, kStep, kBytes / 8, 8, kAlong, kBytes>;
  for (const Case& c :
       {Case{2,
             7,
             14,
             16,
             16,
             {kHeight, kWidth, kStep, kHeight / 2, kWidth / 2},
             true,
             true,
             A::Clip,
             8,
             Kind::Depthwise,
             planes},
        Case{1, 13, 17, 40, 40, {kHeight, kWidth, kStep, 0, 1}, true, false, A::Swish, 0, Kind::Depthwise, planes},
        Case{3,
             12,
             13,
             8,
             8,
             {kHeight, kWidth, kStep, 1, kWidth + 1},
             false,
             false,
             A::Relu,
             0,
             Kind::Depthwise,
             planes}})
    for (const bool is_finite : {true, false})
      for (const bool is_aligned : {true, false}) {
        if (!is_finite && c.activation == A::Swish) continue;  // of an infinite number none
        Drawn drawn(c);
        TileProblem& p = drawn.p;
        p.has_finite_weights = is_finite, p.is_aligned = is_aligned;
        if (!is_finite) drawn.weights[1] = gopt_half(INFINITY);
        const auto parts = [](int all, int of) { return (all + of - 1) / of; };
        const int blocks = c.images * p.out_planes * parts(p.out_height, S::kLines) * parts(p.out_width, S::kColumns) *
                           parts(c.channels, S::kChannels);
        emulation::launch(dim3(static_cast<unsigned>(blocks)), S::kThreads, [&] { channel_tile_kernel<S>(p); });
        expect_right(drawn, name + " by rectangles" + (is_finite ? "" : ", infinite"));
      }
}

// Numbers of all kinds are the sum of their two parts, of which the tensor cores take 11 bits.
void run_split() {
  constexpr unsigned kStep = 9973, kBitsOfTf32 = 0xffffe000u;
  const auto number = [](unsigned bits) { return std::bit_cast<float>(bits); };
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += kStep) {
    const auto own = static_cast<unsigned>(bits);
    unsigned large = 0, small = 0;
    split_float(own, large, small);
    const float x = number(own), taken = number(small & kBitsOfTf32);
    const bool is_right =
        std::isfinite(x)
            ? number(large) + number(small) == x && (large & ~kBitsOfTf32) == 0 &&
                  std::abs(static_cast<double>(number(large)) + taken - x) <= std::abs(x) * 0x1p-22 + 0x1p-136
            : std::isfinite(number(large)) && (std::isnan(x) ? std::isnan(taken) : taken == x);
    if (is_right) continue;
    std::printf("%08x is split into %08x and %08x\n", own, large, small);
    failures++;
  }
}

// Sums of few bits stay, others grow by what tensor cores were seen to cut off in the mean, and none overflows.
void run_cuts() {
  const auto expect = [](bool is_right, const char* what, double x) {
    if (is_right) return;
    std::printf("with what was cut: %s, %.9g\n", what, x);
    failures++;
  };
  for (int whole = 0; whole < 1 << 20; whole += 7)
    for (const float x : {static_cast<float>(whole), -static_cast<float>(whole), static_cast<float>(whole) * 0x1p-30F})
      expect(with_what_was_cut(x) == x, "a number of 20 bits", x);
  const float largest = std::numeric_limits<float>::max(), infinite = std::numeric_limits<float>::infinity();
  for (const float x : {largest, -largest, infinite, -infinite, 0x1p-149F, 0x1.8p-140F})
    expect(with_what_was_cut(x) == x, "the largest and the smallest", x);
  expect(std::isnan(with_what_was_cut(std::numeric_limits<float>::quiet_NaN())), "no number", NAN);
  std::mt19937 random(11);
  double grown = 0;
  constexpr int kCount = 1 << 20;
  for (int i = 0; i < kCount; i++) {
    const float x = std::normal_distribution<float>()(random), more = with_what_was_cut(x);
    expect(std::abs(more - x) <= std::abs(x) * 0x1.1p-22F, "more than two last places", x);
    grown += (static_cast<double>(more) - x) / x / kCount;
  }
  expect(grown > 0.95e-7 && grown < 1.1e-7, "the mean share", grown);
}

void run_means_of_images() {
  for (const Case& c : {Case{2, 7, 7, 72, 72, {7, 7, 1, 0, 0}, false, false, A::None, 8, Kind::Mean},
                        Case{1, 3, 13, 8, 8, {3, 13, 1, 0, 0}, false, false, A::None, 0, Kind::Mean},
                        Case{2, 33, 37, 136, 136, {33, 37, 1, 0, 0}, false, false, A::None, 0, Kind::Mean}})
    for (const unsigned shares : {1U, 2U, 4U, 8U}) {
      Drawn drawn(c);
      const int blocks = c.images * ((c.channels / 8 + kChunksOfBlock - 1) / kChunksOfBlock);
      emulation::launch(dim3(static_cast<unsigned>(blocks), shares), kChannelThreads,
                        [&] { whole_mean_kernel<gopt_half>(drawn.p); });
      expect_right(drawn, "means of images");
    }
}

// Depths that fill what lanes ask for ahead or not, columns that fill blocks or not, fewer lines than a kernel makes.
template <int kLines, int kWarpsOfColumn>
void run_vectors(const std::string& name) {
  for (const Case& c : {Case{1, 1, kLines, 1048, 9, {1, 1, 1, 0, 0}, true, true, A::GeluErf, 3},
                        Case{1, 1, (kLines + 1) / 2, 40, 30, {1, 1, 1, 0, 0}, true, false, A::Relu, 0},
                        Case{1, 1, kLines, 4096, 4, {1, 1, 1, 0, 0}, false, false, A::None, 0}}) {
    Drawn drawn(c);
    using Product = VectorProduct<Half, kLines, kWarpsOfColumn>;
    const int blocks = (c.columns + Product::kColumns - 1) / Product::kColumns;
    emulation::launch(dim3(static_cast<unsigned>(blocks)), kVectorThreads,
                      [&] { vector_kernel<Half, kLines, kWarpsOfColumn>(drawn.p); });
    expect_right(drawn, name + " lines by vectors");
  }
}

// Likewise by numbers of few bits, in the order that the kernel says: blocks of a quarter of a chunk and of more, one
// for all of a column, numbers with signs, and lines that begin anywhere. Scales are powers of two: the weights are
// halves.
template <class T, class Scale, int kBits, bool kHasZeros, bool kIsAligned, int kTiles, int kWarps>
void run_quantized(const std::string& name) {
  using Product = QuantizedProduct<T, Scale, kBits, kHasZeros, kIsAligned, kTiles, kWarps>;
  constexpr int kOfWord = Product::kOfWord, kNumbers = 1 << kBits, kOneBlock = 31;
  std::mt19937 random(17);
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  for (const Case& c : {Case{1, 1, 3, 1152, 9, {1, 1, 1, 0, 0}, true, true, A::GeluErf, 3},
                        Case{1, 1, 8, 128, 50, {1, 1, 1, 0, 0}, true, false, A::Relu, 0},
                        Case{1, 1, 1, 4096, 16, {1, 1, 1, 0, 0}, false, false, A::None, 0}})
    for (const int words_of_block : {2, 3, 4, 5, kOneBlock})
      for (const bool is_signed : {false, true}) {
        Drawn drawn(c);
        const int words = c.channels / kOfWord, blocks = ((words - 1) >> words_of_block) + 1;
        const int least = is_signed ? -kNumbers / 2 : 0;
        QuantizedProblem problem{drawn.p};
        problem.numbers.words_of_block = words_of_block;
        problem.numbers.scale = problem.numbers.zero = {blocks, blocks > 1 ? 1 : 0};
        problem.numbers.zero_of_all = 3;
        problem.numbers.signs = is_signed ? kNumbers / 2 : 0;
        std::vector<unsigned> numbers(static_cast<size_t>(c.columns) * words);
        std::vector<Scale> scales(static_cast<size_t>(c.columns) * blocks);
        std::vector<unsigned char> zeros(scales.size());
        for (size_t i = 0; i < scales.size(); i++) {
          scales[i] = Scale(0.5F / static_cast<float>(kNumbers << below(3)));
          zeros[i] = static_cast<unsigned char>(least + below(kNumbers));
        }
        for (size_t i = 0; i < drawn.weights.size(); i++) {
          const size_t column = i / c.channels, k = i % c.channels, word = k / kOfWord, n = k % kOfWord,
                       of = column * blocks + (word >> words_of_block), place = word % 4 * 4 + word % 16 / 4;
          const int number = least + below(kNumbers), zero = !kHasZeros  ? least + 3
                                                             : is_signed ? static_cast<signed char>(zeros[of])
                                                                         : static_cast<int>(zeros[of]);
          const size_t bit = kBits == 8 ? 8 * n : n % 2 * 16 + n / 2 * 4;
          numbers[column * words + word / 16 * 16 + place] |= static_cast<unsigned>(number - least) << bit;
          drawn.weights[i] = gopt_half(static_cast<float>(number - zero) * static_cast<float>(scales[of]));
        }
        std::vector<T> lines(drawn.src.size() + 1);
        const size_t first = kIsAligned ? 0 : 1;
        for (size_t i = 0; i < drawn.src.size(); i++) lines[first + i] = T(static_cast<float>(drawn.src[i]));
        problem.tile.src = lines.data() + first, problem.tile.weights = numbers.data();
        problem.scales = scales.data(), problem.zeros = zeros.data();
        std::ranges::fill(drawn.dst, gopt_half(kUnwritten));
        const int tiles = (c.columns + Product::kColumns - 1) / Product::kColumns;
        emulation::launch(dim3(static_cast<unsigned>(tiles)), Product::kThreads,
                          [&] { quantized_kernel<T, Scale, kBits, kHasZeros, kIsAligned, kTiles, kWarps>(problem); });
        expect_right(drawn, name + ", blocks of " + std::to_string(words_of_block) + (is_signed ? ", signed" : ""));
      }
}

// Images of few channels: windows that end within a rectangle, and beside it, steps of which some begin at odd
// positions, kernels of lines that fill four taps or not.
template <class S>
void run_patches(const std::string& name) {
  for (const Case& c : {Case{2, 21, 37, 4, 40, {7, 7, 2, 3, 3}, true, false, A::Relu, 0},
                        Case{1, 13, 40, 4, 72, {3, 3, 2, 1, 1}, true, true, A::GeluErf, 8},
                        Case{3, 9, 19, 4, 32, {3, 3, 1, 1, 1}, false, true, A::None, 0},
                        Case{1, 31, 70, 4, 64, {11, 11, 4, 2, 2}, true, false, A::Relu, 0},
                        Case{1, 12, 50, 4, 24, {5, 8, 3, 0, 4}, true, false, A::Swish, 0},
                        Case{1, 5, 17, 4, 30, {1, 1, 1, 0, 0}, true, false, A::None, 0},
                        Case{2, 17, 50, 4, 40, {3, 4, 1, 1, 2, 3}, true, true, A::Relu, 0},
                        Case{1, 33, 23, 4, 32, {4, 3, 3, 2, 0, 2}, true, false, A::None, 0}}) {
    Drawn drawn(c);
    // What no window sees, though a step of the depth reaches it, may be anything.
    const int reach = (drawn.p.out_width - 1) * c.window.along() - c.window.left + c.window.width;
    for (size_t i = 0; i < drawn.src.size(); i++)
      if (static_cast<int>(i) / c.channels % c.width >= reach) drawn.src[i] = gopt_half(INFINITY);
    PatchProblem patch = patches_of(drawn.p, S::kRows);
    const int rectangles = patch.blocks, columns = (c.columns + S::kColumns - 1) / S::kColumns;
    const bool has_chunks = c.columns % 8 == 0 && drawn.p.dst_line % 8 == 0 && drawn.p.is_aligned;
    for (const auto& [blocks, from_registers] : {std::pair(rectangles, false),
                                                 {(rectangles + 2) / 3, false},
                                                 {rectangles, true},
                                                 {(rectangles + 2) / 3, true}}) {
      if (from_registers && !has_chunks) continue;
      patch.blocks = blocks, patch.is_stored_from_registers = from_registers;
      std::fill(drawn.dst.begin(), drawn.dst.end(), gopt_half(kUnwritten));
      emulation::launch(dim3(static_cast<unsigned>(blocks * columns)), S::kThreads,
                        [&] { patch_kernel<Half, S>(patch); });
      expect_right(drawn, name + " by patches, " + std::to_string(blocks) + " blocks" +
                              (from_registers ? ", from registers" : ""));
    }
  }
}

// Of a tile of warpgroups, whose warps have 16 rows each.
template <int kRows_, int kColumns_>
struct Warps {
  static constexpr int kRows = kRows_, kColumns = kColumns_, kThreads = kRows * 2;
};
enum class Stored { FromRegisters, ByWarps, ByRows };

// What a warpgroup does with the sums that its instructions leave in the registers of a thread.
template <class S>
void store(const Drawn& drawn, Stored stored) {
  const TileProblem& p = drawn.p;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, parts = static_cast<int>(gridDim.y),
            part = static_cast<int>(blockIdx.y), rows = S::kRows / parts;
  const int first_row = static_cast<int>(blockIdx.x) % p.row_tiles * S::kRows,
            first_column = static_cast<int>(blockIdx.x) / p.row_tiles * S::kColumns;
  float sums[S::kColumns / 8][4];
  for (int n = 0; n < S::kColumns / 8; n++)
    for (int i = 0; i < 4; i++) {
      const int row = first_row + thread / 32 * 16 + lane / 4 + i / 2 * 8,
                column = first_column + n * 8 + lane % 4 * 2 + i % 2;
      sums[n][i] = row < p.rows && column < p.columns ? static_cast<float>(drawn.product(row, column)) / parts : NAN;
    }
  if (stored == Stored::FromRegisters) {
    RegisterResult<S, gopt_half> result(p, first_row + static_cast<int>(threadIdx.x) / 32 * 16, p.rows, first_column);
    result.fetch_bias();
    result.fetch_addends();
    return result.finish(sums);
  }
  const int first =
      stored == Stored::ByWarps ? TileResult<S>::first_of_warp(thread) : thread + part * rows * TileResult<S>::kFours;
  TileResult<S> result(p, first_row, first_column, 0, first);
  result.fetch_bias();
  result.fetch_addend();
  float* room = reinterpret_cast<float*>(emulation::own_block().memory);
  if (stored == Stored::ByWarps) return result.finish_by_warps(room, sums);
  // Sent to the block that finishes the row.
  for (int n = 0; n < S::kColumns / 8; n++)
    for (int i = 0; i < 4; i++) {
      const int row = thread / 32 * 16 + lane / 4 + i / 2 * 8, column = n * 8 + lane % 4 * 2 + i % 2;
      float* there = reinterpret_cast<float*>(emulation::blocks[static_cast<size_t>(row / rows)].memory);
      there[(part * rows + row % rows) * TileResult<S>::kPitch + column] = sums[n][i];
    }
  emulation::cluster_barrier.arrive_and_wait();
  result.finish_rows(room, rows);
}

template <class S>
void run_results(const std::string& name) {
  for (const Case& c : {Case{1, 1, 150, 8, 144, {1, 1, 1, 0, 0}, true, true, A::Relu, 8},
                        Case{1, 1, 70, 8, 72, {1, 1, 1, 0, 0}, true, false, A::None, 0},
                        Case{1, 1, 40, 8, 136, {1, 1, 1, 0, 0}, true, false, A::Clip, 0},
                        Case{1, 1, 40, 8, 64, {1, 1, 1, 0, 0}, true, true, A::GeluErf, 0},
                        Case{1, 1, 40, 8, 64, {1, 1, 1, 0, 0}, true, true, A::GeluTanh, 0},
                        Case{1, 1, 40, 8, 64, {1, 1, 1, 0, 0}, false, true, A::Swish, 0},
                        Case{1, 1, 33, 8, 200, {1, 1, 1, 0, 0}, false, true, A::None, 0}})
    for (const auto [stored, parts] :
         {std::pair(Stored::FromRegisters, 1U), {Stored::ByWarps, 1U}, {Stored::ByRows, 2U}, {Stored::ByRows, 8U}}) {
      Drawn drawn(c);
      const auto tiles = static_cast<unsigned>(tiles_of<S>(drawn.p));
      emulation::launch(dim3(tiles, parts), S::kThreads, [&, stored = stored] { store<S>(drawn, stored); });
      expect_right(drawn, name + " stored in way " + std::to_string(static_cast<int>(stored)));
    }
}

// Short forms of activations, over all that 16 bits hold and where they end.
// To its own size, which what is computed of it may need; of infinities and what is no number, too.
void run_short_erf() {
  constexpr double kOfItself = 1e-6;
  for (unsigned bits = 0; bits < 1U << 16; bits++) {
    const float x = std::bit_cast<float>(bits << 16 | 0x5555);  // of all magnitudes and both signs
    const double wanted = std::erf(static_cast<double>(x));
    const float found = gopt_short_erf(x);
    const bool is_tiny = std::abs(wanted) < 1e-37;  // below the normal numbers
    if (std::isnan(x) ? std::isnan(found) : std::abs(found - wanted) <= kOfItself * std::abs(wanted) + is_tiny * 1e-37)
      continue;
    std::printf("short erf of %g is %g, not %g\n", x, found, wanted);
    failures++;
    return;
  }
}

// Whether `found` is what an activation makes of x, to 4e-7 of one and as much of the result; of halves one in the last
// place is 5e-4.
bool is_activated(A kind, float x, float found) {
  constexpr double kOfOne = 4e-7;
  // With alpha 1, Swish is x times Sigmoid.
  const double wanted = kind == A::Swish ? x * activated(A::Sigmoid, x) : activated(kind, x);
  if (std::isnan(wanted)) return std::isnan(found);
  if (std::isinf(wanted)) return found == static_cast<float>(wanted);
  return std::abs(found - wanted) <= kOfOne * (1 + std::abs(wanted)) * std::max(1.0, std::abs(double{x}) / 8);
}
// Of `kFours` times four halves at a time, from one on.
template <int kFours>
void expect_activated(A kind, int bits) {
  float x[kFours][4], found[kFours][4];
  for (int i = 0; i < 4 * kFours; i++) {
    __half_raw raw;
    raw.x = static_cast<unsigned short>(bits + i);
    x[i / 4][i % 4] = found[i / 4][i % 4] = static_cast<float>(gopt_half(__half(raw)));
  }
  apply_activation<gopt_half, kFours>(found, {kind, 1.0F, 0.0F});
  for (int i = 0; i < 4 * kFours; i++) {
    if (is_activated(kind, x[i / 4][i % 4], found[i / 4][i % 4])) continue;
    std::printf("activation %d of %g is %g\n", static_cast<int>(kind), x[i / 4][i % 4], found[i / 4][i % 4]);
    failures++;
  }
}
void run_short_forms() {
  for (const A kind : {A::Sigmoid, A::Swish, A::GeluErf, A::GeluTanh}) {
    const int before = failures;
    for (int bits = 0; bits < 1 << 16 && failures == before; bits += 32) {
      expect_activated<8>(kind, bits);
      for (int four = 0; four < 32; four += 4) expect_activated<1>(kind, bits + four);
    }
  }
}

// Of floats, which are as exact as can be: sixteen at a time as one by one.
void run_activations_of_floats() {
  constexpr int kCount = 16;
  for (const A kind : {A::Tanh, A::Elu, A::GeluErf, A::GeluTanh, A::Sigmoid, A::Swish, A::LeakyRelu, A::HardSwish})
    for (int step = -32; step <= 32; step++) {
      float found[kCount / 4][4], x[kCount];
      for (int i = 0; i < kCount; i++)
        x[i] = found[i / 4][i % 4] = 0.37F * static_cast<float>(step) + 0.11F * static_cast<float>(i);
      apply_activation<float, kCount / 4>(found, {kind, 0.7F, 0.0F});
      for (int i = 0; i < kCount; i++) {
        if (found[i / 4][i % 4] == activate(x[i], {kind, 0.7F, 0.0F})) continue;
        std::printf("activation %d of %g, one of sixteen, is %g\n", static_cast<int>(kind), x[i], found[i / 4][i % 4]);
        failures++;
        return;
      }
    }
}

// Rows one after another by the threads of a block, each of whom is to have its row's sum.
void run_reductions() {
  constexpr int kRows = 8, kTimes = 20;
  constexpr unsigned kThreads = 128;
  std::vector<float> x(kRows * kThreads), sums(x.size(), kUnwritten);
  for (int time = 0; time < kTimes; time++) {
    for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>((i * 7 + static_cast<size_t>(time)) % 17);
    emulation::launch(dim3(1), kThreads, [&] {
      for (unsigned at = threadIdx.x; at < x.size(); at += kThreads)
        sums[at] = gopt_block_reduce(x[at], [](auto a, auto b) { return a + b; });
    });
    for (size_t at = 0; at < x.size(); at++) {
      const auto first = x.begin() + static_cast<std::ptrdiff_t>(at / kThreads * kThreads);
      const float wanted = std::accumulate(first, first + kThreads, 0.0f);
      if (sums[at] == wanted) continue;
      std::printf("a block's sum is %g, not %g\n", sums[at], wanted);
      failures++;
      return;
    }
  }
}

// Floats, of which fewer are stored at once.
template <class S>
void run_floats(const std::string& name) {
  constexpr int kRows = 83, kColumns = 140, kLine = 144;
  const auto sum_at = [](int row, int column) { return static_cast<float>(row * 7 % 31 - column * 5 % 23); };
  std::vector<float> bias(kColumns), addend(kRows * kColumns), dst(kRows * kLine, kUnwritten);
  for (size_t i = 0; i < bias.size(); i++) bias[i] = static_cast<float>(i) / 4;
  for (size_t i = 0; i < addend.size(); i++) addend[i] = static_cast<float>(i % 97) / 8;
  TileProblem p;
  p.rows = kRows, p.columns = kColumns, p.dst_line = kLine, p.addend_line = kColumns, p.scale = 0.5f;
  p.bias = bias.data(), p.addend = addend.data(), p.dst = dst.data(), p.is_aligned = true;
  emulation::launch(dim3(static_cast<unsigned>(tiles_of<S>(p))), S::kThreads, [&] {
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
    const int first_row = static_cast<int>(blockIdx.x) % p.row_tiles * S::kRows,
              first_column = static_cast<int>(blockIdx.x) / p.row_tiles * S::kColumns;
    float sums[S::kColumns / 8][4];
    for (int n = 0; n < S::kColumns / 8; n++)
      for (int i = 0; i < 4; i++)
        sums[n][i] =
            sum_at(first_row + thread / 32 * 16 + lane / 4 + i / 2 * 8, first_column + n * 8 + lane % 4 * 2 + i % 2);
    RegisterResult<S, float> result(p, first_row + static_cast<int>(threadIdx.x) / 32 * 16, p.rows, first_column);
    result.fetch_bias();
    result.fetch_addends();
    result.finish(sums);
  });
  for (int row = 0; row < kRows; row++)
    for (int column = 0; column < kLine; column++) {
      const size_t at = static_cast<size_t>(row) * kLine + column;
      const float wanted = column >= kColumns ? kUnwritten
                                              : sum_at(row, column) / 2 + bias[column] +
                                                    addend[static_cast<size_t>(row) * kColumns + column];
      if (dst[at] == wanted) continue;
      std::printf("%s of floats: [%d, %d] is %g, not %g\n", name.c_str(), row, column, dst[at], wanted);
      failures++;
      return;
    }
}

}  // namespace

int main() {
  run_reductions();
  run_split();
  run_cuts();
  run_short_forms();
  run_activations_of_floats();
  run_short_erf();
  run_floats<Warps<64, 32>>("64x32");
  run_floats<Warps<64, 64>>("64x64");
  run_floats<Warps<64, 128>>("64x128");
  run_floats<Warps<64, 256>>("64x256");
  run_results<Warps<64, 32>>("64x32");
  run_results<Warps<64, 64>>("64x64");
  run_results<Warps<64, 128>>("64x128");
  run_results<Warps<128, 128>>("128x128");
  run_channels<gopt_runtime::Window::Depthwise, 3, 1, 1>("depthwise 3x3", Kind::Depthwise);
  run_rectangles<3, 3, 1, 8, 64>("depthwise 3x3");
  run_rectangles<3, 3, 2, 2, 32>("depthwise 3x3 in steps");
  run_rectangles<7, 7, 1, 4, 64>("depthwise 7x7");
  run_rectangles<5, 5, 2, 4, 64>("depthwise 5x5 in steps");
  run_rectangles<4, 4, 1, 2, 32>("depthwise 4x4");
  run_rectangles<1, 6, 2, 8, 64>("depthwise 1x6 in steps");
  run_rectangles<3, 3, 1, 8, 64, 3>("depthwise 3x3x3", {4, 3, 1, 1, 1});
  run_rectangles<3, 5, 2, 2, 32, 4>("depthwise 4x3x5 apart, in steps", {9, 4, 3, 2, 5});
  run_rectangles<7, 7, 1, 4, 64, 2>("depthwise 2x7x7", {2, 2, 1, 1, 0});
  run_rectangles<3, 3, 1, 4, 64, 3>("depthwise 3x3x3 of which some see nothing", {2, 3, 1, 1, 4});
  run_channels<gopt_runtime::Window::Largest, 3, 4, 2>("largest by fours in steps", Kind::Largest);
  run_channels<gopt_runtime::Window::Largest, 2, 4, 1>("largest by fours", Kind::Largest);
  run_channels<gopt_runtime::Window::Mean, 3, 4, 1>("means by fours", Kind::Mean);
  run_channels<gopt_runtime::Window::Mean, 2, 4, 2>("means of all by fours in steps", Kind::MeanOfAll);
  run_means_of_images();
  run_vectors<1, 1>("1");
  run_vectors<4, 4>("4, a column to a block,");
  run_quantized<gopt_half, float, 4, false, true, 1, 4>("numbers of 4 bits");
  run_quantized<gopt_half, gopt_half, 4, true, false, 1, 8>("numbers of 4 bits with zero points");
  run_quantized<gopt_half, gopt_half, 8, true, true, 1, 4>("numbers of 8 bits with zero points");
  run_quantized<float, float, 4, true, true, 3, 4>("floats by numbers of 4 bits with zero points");
  run_quantized<float, gopt_half, 8, false, false, 3, 8>("floats by numbers of 8 bits");
  run_patches<Patch64x32>("64x32");
  run_patches<Patch64x64>("64x64");
  run_patches<Patch128x64>("128x64");
  run_prologue<Warpgroups64x32, Before::Channels>("64x32", 1);
  run_prologue<Warpgroups64x64, Before::Channels>("64x64 by 2", 2);
  run_prologue<Warpgroups64x32, Before::Gates>("64x32 by 2", 2);
  run_prologue<Warpgroups128x64, Before::Gates>("128x64", 1);
  run<Tile32x32>("32x32", 1);
  run<Tile16x64>("16x64 by 2", 2);
  run_transposed<Tile32x32, Copies::Chunks>("32x32", 1, kTransposed);
  run_transposed<Tile16x64, Copies::Chunks>("16x64 by 2", 2, kTransposed);
  run_transposed<Tile32x64, Copies::Elements>("32x64 by elements", 1, kTransposedByElements);
  run_transposed<Tile32x64, Copies::Elements>("32x64 by elements", 2, kTransposed);
  run_transposed<Tile64x32, Copies::ChunksOfSource>("64x32 to few channels", 1, kTransposedToFew);
  run_transposed<Volume<Tile64x32>, Copies::Chunks>("64x32 of volumes", 1, kTransposedVolumes);
  run_folds(false, kTransposed);
  run_folds(false, kTransposedByElements);
  run_folds(true, kTransposed);
  run_folds(false, kTransposedApart);
  run_folds(true, kTransposedApart);
  run_folds(true, kTransposedToFew);
  run_epilogues<float>("floats");
  run_epilogues<gopt_half>("halves");
  run_epilogues<gopt_bfloat16>("bfloat16");
  run_groups<Warpgroups64x32>("64x32", 1);
  run_groups<Warpgroups64x64>("64x64 by 2", 2);
  return failures > 0 ? 1 : 0;
}
