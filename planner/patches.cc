// Convolutions of images of few channels by patches on CUDA (codegen/cuda/runtime/gopt_patches.cuh).
#include "patches.h"

#include <algorithm>
#include <cmath>

#include "gopt/convolution_shape.h"
#include "gopt/tile.h"
#include "tiles.h"

namespace gopt {

namespace {
constexpr std::string_view kFamily = "patches";
}

std::string patch_name(const Tile& tile) {
  return std::string(kFamily) + ":" + std::to_string(tile.rows) + "x" + std::to_string(tile.columns);
}

std::optional<Tile> parse_patch_tile(std::string_view implementation) {
  Tile tile;
  const bool is_one = planner::read_numbers(implementation, kFamily, {{':', &tile.rows}, {'x', &tile.columns}});
  return is_one ? std::optional(tile) : std::nullopt;
}

}  // namespace gopt

namespace gopt::planner {
namespace {

// Those that are named in gopt_patches.cuh.
constexpr Tile kShapes[] = {{64, 32}, {64, 64}, {128, 64}};

// An image whose channels lie in fours, in 16 bits: three and a zero, or four. Kernels and steps whose patch and
// weights a block has room for.
bool convolves(const Plan& plan, const Kernel& kernel) {
  constexpr int64_t kLanes = 4, kMostTaps = 11, kMostStep = 4;
  constexpr size_t kAxes = 2;
  if (!convolves_by_tiles(plan, kernel)) return false;
  const Buffer &x = plan.buffer(kernel.input_buffers[0]), &w = plan.buffer(kernel.input_buffers[1]);
  const ConvolutionShape shape = convolution_shape(plan, kernel);
  const bool is_whole = x.layout.is_blocked() || x.layout.line() == 0;
  if (!is_whole || shape.src[1] != kLanes || !is_half(x.element) || w.element != x.element) return false;
  if (shape.groups != 1 || shape.axes() != kAxes || shape.weights[1] != kLanes) return false;
  for (size_t a = 0; a < kAxes; a++)
    if (shape.weights[2 + a] > kMostTaps || shape.strides[a] > kMostStep || shape.dilations[a] != 1) return false;
  return true;
}

// What a block keeps, as runtime/gopt_patches.cc has it: sums, weights, and the patch, twice where steps are odd.
// Devices of the generation before an H100 may have 99 KB of it.
bool has_room(const ConvolutionShape& shape, const Tile& tile) {
  constexpr int64_t kMost = 99 * 1024, kPosition = 8, kWide = 16, kMorePerRow = 8;
  const int64_t taps = (shape.weights[3] + 3) / 4 * 4, high = tile.rows / kWide,
                sums = int64_t{tile.rows} * (tile.columns + kMorePerRow) * 4,
                weights = tile.columns * (shape.weights[2] * taps * kPosition + 16),
                patch = ((high - 1) * shape.strides[0] + shape.weights[2]) *
                        ((kWide - 1) * shape.strides[1] + taps + 1) * kPosition;
  return sums + weights + patch * (shape.strides[1] % 2 == 0 ? 1 : 2) <= kMost;
}

template <size_t kShape>
bool takes(const Plan& plan, const Kernel& kernel) {
  return convolves(plan, kernel) && has_room(convolution_shape(plan, kernel), kShapes[kShape]);
}

// Waves of blocks: what results take of each decides, more than products do (H200: 3.6 us of 64x32, 10 of 128x64).
template <size_t kShape>
double expected_us(const ConvolutionShape& shape) {
  constexpr double kStartUs = 2.4, kWaveUs = 2.3, kThousandUs = 0.95, kStepUs = 0.02, kBlocksAtOnce = 132 * 3;
  constexpr Tile tile = kShapes[kShape];
  constexpr int kWide = 16, kHigh = tile.rows / kWide;
  const auto tiles = [](int64_t extent, int of) { return std::ceil(static_cast<double>(extent) / of); };
  const double blocks = static_cast<double>(shape.dst[0]) * tiles(shape.dst[2], kHigh) * tiles(shape.dst[3], kWide) *
                        tiles(shape.dst[1], tile.columns);
  const double steps = static_cast<double>(shape.weights[2]) * tiles(shape.weights[3], 4);
  return kStartUs + std::ceil(blocks / kBlocksAtOnce) *
                        (kWaveUs + kThousandUs * tile.rows * tile.columns / 1024 + kStepUs * steps);
}

template <size_t kShape>
double efficiency(const Plan& plan, const Kernel& kernel) {
  constexpr double kSpeedOfHalves = 6;
  const ConvolutionShape shape = convolution_shape(plan, kernel);
  const double taps = static_cast<double>(element_count(std::span(shape.weights).subspan(1)));
  return share_of_peak(2 * static_cast<double>(element_count(shape.dst)) * taps, expected_us<kShape>(shape),
                       kSpeedOfHalves);
}

// What is compiled to be timed takes seconds: not those that are expected to be far behind.
template <size_t kShape>
bool is_likely(const Plan& plan, const Kernel& kernel) {
  constexpr double kWithin = 1.3;
  const ConvolutionShape shape = convolution_shape(plan, kernel);
  const double least = std::min({expected_us<0>(shape), expected_us<1>(shape), expected_us<2>(shape)});
  return expected_us<kShape>(shape) <= kWithin * least;
}

template <size_t kShape>
Implementation row_of() {
  static const std::string name = patch_name(kShapes[kShape]);
  return {name, KernelKind::Convolution, TargetKind::Cuda, takes<kShape>, efficiency<kShape>, false, is_likely<kShape>};
}

}  // namespace

std::vector<Implementation> patch_implementations() { return {row_of<0>(), row_of<1>(), row_of<2>()}; }

}  // namespace gopt::planner
