#include "cpu_convolutions.h"

#include <algorithm>
#include <cmath>

#include "convolved.h"
#include "cpu_arithmetic.h"
#include "gopt/convolution_shape.h"
#include "gopt/node_attributes.h"
#include "gopt/runtime/gopt_amx.h"

namespace gopt::planner {
namespace {

// Of what large images reach.
double share_of_small_images(const Plan& plan, const Kernel& kernel) {
  return std::min(1.0, convolved(plan, kernel).positions / 64 + 0.25);
}

// A share, less what it takes to convert all tensors: some 80 operations an element.
double with_conversions(const Convolved& c, double share) {
  return c.operations / (c.operations / share + 80 * c.elements);
}

// Loops over planes: lanes are positions, and a value that is read serves the channels of a group.
double planar_efficiency(const Plan& plan, const Kernel& kernel) {
  const Convolved c = convolved(plan, kernel);
  const double share = (c.out < 2   ? 0.2
                        : c.out < 4 ? 0.4
                                    : 0.6) *
                       std::min(1.0, c.positions / 64 + 0.1) * (c.in * c.taps < 8 ? 0.5 : 1);
  return c.plain ? share : with_conversions(c, share);
}

double channels_last_efficiency(const Plan& plan, const Kernel& kernel) {
  const Convolved c = convolved(plan, kernel);
  const double lanes = std::min(1.0, c.out / 16) * std::min(1.0, c.in / 4);
  return with_conversions(c, 0.85 * lanes * share_of_small_images(plan, kernel));
}

// Of the blocks that so many need, the share that they fill.
double whole(double n, double block) { return n / (block * std::ceil(n / block)); }

// What oneDNN has for the tensors as they lie; else the better of the others, as the runtime decides.
double direct_efficiency(const Plan& plan, const Kernel& kernel) {
  const Convolved c = convolved(plan, kernel);
  const bool depthwise = c.groups > 1 && c.in == 1 && c.out == 1;
  const double share = share_of_small_images(plan, kernel) * (c.taps == 1 ? 0.82 : 0.95);
  const double others = c.in < 8 || c.out < 8 || c.transposed
                            ? planar_efficiency(plan, kernel)
                            : std::max(planar_efficiency(plan, kernel), channels_last_efficiency(plan, kernel));
  if (c.transposed) return planar_efficiency(plan, kernel);
  if (c.plain) return c.groups > 1 ? others : 0.33;
  if (!c.blocked) return depthwise ? 0.35 * share : 0.9 * share * std::min(1.0, c.out / 16) * std::min(1.0, c.in / 4);
  if (depthwise) return image(plan, kernel).dims.size() == 5 ? others : 0.4 * share;
  if (c.groups == 1)
    return share * whole(c.out, c.lanes) * (image(plan, kernel).layout.is_blocked() ? whole(c.in, c.lanes) : 1);
  const double joined = std::fmod(c.lanes, c.in) == 0 && std::fmod(c.lanes, c.out) == 0
                            ? std::min(c.in, c.out) / c.lanes
                            : whole(c.in, c.lanes) * whole(c.out, c.lanes);
  return joined >= 0.25 ? joined * share : others;
}

bool has_channels_last(const Plan& plan, const Kernel& kernel) {
  const Convolved c = convolved(plan, kernel);
  return !kernel.integers && !c.transposed && c.in >= 4 && c.out >= 4 && (c.plain || (c.blocked && c.groups > 1));
}

// Blocks of whole groups are oneDNN's.
bool has_planar(const Plan& plan, const Kernel& kernel) {
  const Convolved c = convolved(plan, kernel);
  return !kernel.integers && !c.transposed && (c.plain || (c.groups > 1 && std::min(c.in, c.out) < c.lanes));
}

// As products of matrices (codegen/cpu/runtime/gopt_unfolded.h), which find enough to do in several channels or in a
// long row of the kernel. Nothing is expected of it that planar loops do not reach: its measured times decide.
bool has_unfolded_planes(const Plan& plan, const Kernel& kernel) {
  constexpr int64_t kLongRow = 8;
  const Convolved c = convolved(plan, kernel);
  return !kernel.integers && !c.transposed && c.plain && is_of_floats(plan, kernel) &&
         (c.out >= 2 || weights(plan, kernel).dims.back() >= kLongRow);
}
double unfolded_planes_efficiency(const Plan& plan, const Kernel& kernel) {
  return 0.9 * planar_efficiency(plan, kernel);
}

// Depthwise, lanes over channels (codegen/cpu/runtime/gopt_channel_lanes.h): worth its two transposes where rows are
// short for lanes or where it leaves out much of the border. Its measured times decide. Each thread has sixteen images.
bool has_channel_lanes(const Plan& plan, const Kernel& kernel) {
  constexpr int64_t kMostPositions = 1 << 16;
  const Convolved c = convolved(plan, kernel);
  const int64_t positions = element_count(std::span(plan.buffer(kernel.input_buffers[0]).dims).subspan(2));
  return !kernel.integers && !kernel.nodes[0]->is(OpKind::ConvTranspose) && c.plain && is_of_floats(plan, kernel) &&
         c.in == 1 && c.out == 1 && c.groups > 1 && positions <= kMostPositions;
}
double channel_lanes_efficiency(const Plan& plan, const Kernel& kernel) {
  return 0.9 * planar_efficiency(plan, kernel);
}

// 3x3 convolutions of stride 1 on blocks of channels (codegen/cpu/runtime/gopt_winograd.h), and those of volumes that
// are such in their last two axes, of so many channels that they pay for what transforms take. Of halves it computes in
// floats, and still takes less than their own products where these are twice as fast; on tiles they are ten times as
// fast.
bool has_winograd(const Plan& plan, const Kernel& kernel) {
  const Buffer &x = image(plan, kernel), &w = weights(plan, kernel), &y = result(plan, kernel);
  constexpr int64_t kFewest = 16;
  const bool is_in_halves = x.element == ElementType::BFloat16 && y.element == x.element && !plan.target.has_tiles;
  if ((!is_of_floats(plan, kernel) && !is_in_halves) || kernel.integers) return false;
  if (w.place != BufferPlace::Weight || !plan.target.open.empty()) return false;
  const size_t axes = x.dims.size() - 2;
  if (axes < 2 || axes > 3 || kernel.nodes[0]->is(OpKind::ConvTranspose)) return false;
  if (!x.layout.is_blocked() || !(y.layout == x.layout)) return false;
  if (w.dims[axes] != 3 || w.dims[axes + 1] != 3 || w.dims[1] != x.dims[1]) return false;
  if (std::min(w.dims[0], w.dims[1]) < kFewest) return false;
  const Attributes& a = kernel.nodes[0]->attributes;
  auto all = [&a, axes](const char* name, int64_t low, int64_t high) {
    auto it = a.find(name);
    if (it == a.end()) return true;
    const auto& numbers = std::get<std::vector<Index>>(it->second);
    for (size_t k = 0; k < numbers.size(); k++) {
      const bool is_plane = axes == 3 && k % axes == 0;
      if (!numbers[k].is_constant()) return false;
      if (!is_plane && (numbers[k].constant() < low || numbers[k].constant() > high)) return false;
    }
    return true;
  };
  return all("strides", 1, 1) && all("dilations", 1, 1) && all("pads", 0, 1);
}

// Transforms cost more of what they save on few channels, and tiles of 4 x 4 waste the border of small images. In
// vectors of 8, and of halves, nothing is expected of it: measured times decide.
double winograd_efficiency(const Plan& plan, const Kernel& kernel) {
  const auto lanes = static_cast<double>(image(plan, kernel).layout.lanes());
  if (lanes == 8 || is_of_halves(plan, kernel)) return 0.9 * direct_efficiency(plan, kernel);
  const Buffer &w = weights(plan, kernel), &y = result(plan, kernel);
  const auto channels = static_cast<double>(std::min(w.dims[0], w.dims[1]));
  const auto covered = [](int64_t n) { return static_cast<double>(n) / static_cast<double>((n + 3) / 4 * 4); };
  const double fill = covered(y.dims[y.dims.size() - 2]) * covered(y.dims.back()) *
                      whole(static_cast<double>(w.dims[0]), lanes) * whole(static_cast<double>(w.dims[1]), lanes);
  return share_of_small_images(plan, kernel) * 0.95 * 1.75 * fill * std::min(1.0, 0.75 + channels / 256);
}

double convolution_in_floats_efficiency(const Plan& plan, const Kernel& kernel) {
  return with_conversions(convolved(plan, kernel), direct_efficiency(plan, kernel));
}

double integer_convolution_efficiency(const Plan& plan, const Kernel& kernel) {
  const Convolved c = convolved(plan, kernel);
  if (c.in == 1 && c.out == 1) return 0.25;
  return kIntegerSpeed * whole(c.out, 16) * whole(c.in * c.taps, 4);
}

// Of one tap, at every position or some: rows of a product.
bool has_convolution_by_panels(const Plan& plan, const Kernel& kernel) {
  constexpr int64_t kFewestPositions = 8;
  const Convolved c = convolved(plan, kernel);
  const Buffer &x = image(plan, kernel), &y = result(plan, kernel);
  const std::vector<int64_t> pads = pads_before(plan, kernel);
  const size_t axes = x.dims.size() - 2;
  const std::vector<int64_t> ones(axes, 1), strides = ints_or(*kernel.nodes[0], "strides", ones);
  for (size_t d = 0; d < axes; d++)
    if (pads[d] != 0 || (y.dims[2 + d] - 1) * strides[d] >= x.dims[2 + d]) return false;  // zeros around the image
  const bool is_same = std::equal(x.dims.begin() + 2, x.dims.end(), y.dims.begin() + 2);
  return is_of_floats(plan, kernel) && !kernel.integers && !c.transposed && c.groups == 1 && c.taps == 1 &&
         x.layout == y.layout && (x.layout.is_channels_last() || c.blocked) && (is_same || axes <= 2) &&
         c.positions >= kFewestPositions && weights(plan, kernel).place == BufferPlace::Weight &&
         plan.target.open.empty();
}
double convolution_by_panels_efficiency(const Plan& plan, const Kernel& kernel) {
  return 0.95 * direct_efficiency(plan, kernel);
}

// In loops of our own (codegen/cpu/runtime/gopt_blocks.h), for processors whose registers hold 8 floats: for those of
// 16 oneDNN has better ones, but of transposed convolutions. Measured times decide.
bool has_convolution_of_blocks(const Plan& plan, const Kernel& kernel) {
  const Convolved c = convolved(plan, kernel);
  return is_of_floats(plan, kernel) && !kernel.integers && c.groups == 1 && c.blocked &&
         (c.lanes == 8 || c.transposed) && image(plan, kernel).layout == result(plan, kernel).layout &&
         weights(plan, kernel).place == BufferPlace::Weight && plan.target.open.empty();
}
double convolution_of_blocks_efficiency(const Plan& plan, const Kernel& kernel) {
  return 0.95 * direct_efficiency(plan, kernel);
}

// Blocks of channels are split as they are: of several groups only where these fill them.
bool has_split_convolution(const Plan& plan, const Kernel& kernel) {
  const Convolved c = convolved(plan, kernel);
  const bool has_blocks = c.groups == 1 || !c.blocked || std::fmod(c.in, c.lanes) == 0;
  return splits_floats(plan, kernel) && !c.transposed && has_blocks && c.in >= 4 &&
         weights(plan, kernel).place == BufferPlace::Weight && plan.target.open.empty();
}
double split_convolution_efficiency(const Plan& plan, const Kernel& kernel) {
  return direct_efficiency(plan, kernel) / 3;
}

// Channels that fill what tiles are deep, with those that the window's last axis becomes.
double tile_channels(const Plan& plan, const Kernel& kernel) {
  const Convolved c = convolved(plan, kernel);
  const Node& node = *kernel.nodes[0];
  const std::vector<int64_t> ones(weights(plan, kernel).dims.size() - 2, 1);
  const int64_t taps = weights(plan, kernel).dims.back();
  const bool is_folded =
      !c.transposed && c.groups == 1 &&
      gopt_runtime::folds_window(static_cast<int64_t>(c.in), taps, ints_or(node, "strides", ones).back(),
                                 ints_or(node, "dilations", ones).back());
  return is_folded ? c.in * static_cast<double>(taps) : c.in;
}
// In blocks of 16 where they are in any; results of plain tensors would be stored one by one.
template <bool (*takes)(const Plan&, const Kernel&)>
bool has_tile_convolution(const Plan& plan, const Kernel& kernel) {
  const Convolved c = convolved(plan, kernel);
  const bool fills = c.groups == 1
                         ? tile_channels(plan, kernel) >= gopt_runtime::kFewestTileChannels
                         : gopt_runtime::groups_fill_tiles(static_cast<int64_t>(c.groups), static_cast<int64_t>(c.in),
                                                           static_cast<int64_t>(c.out));
  return takes(plan, kernel) && !c.transposed && fills && !c.plain && (!c.blocked || c.lanes == 16) &&
         weights(plan, kernel).place == BufferPlace::Weight && plan.target.open.empty();
}
template <const double& speed>
double tile_convolution_efficiency(const Plan& plan, const Kernel& kernel) {
  const Convolved c = convolved(plan, kernel);
  const double in = tile_channels(plan, kernel);
  const double filled = in / (32 * std::ceil(in / 32)) * c.out / (16 * std::ceil(c.out / 16));
  return with_conversions(c, speed * 0.95 * filled * share_of_small_images(plan, kernel));
}

constexpr Implementation kRows[] = {
    {"direct", KernelKind::Convolution, TargetKind::Cpu, is_not_of_integers, direct_efficiency},
    {"winograd", KernelKind::Convolution, TargetKind::Cpu, has_winograd, winograd_efficiency},
    {"integers", KernelKind::Convolution, TargetKind::Cpu, is_of_integers, integer_convolution_efficiency},
    {"channels-last", KernelKind::Convolution, TargetKind::Cpu, has_channels_last, channels_last_efficiency},
    {"planar", KernelKind::Convolution, TargetKind::Cpu, has_planar, planar_efficiency},
    {"unfolded", KernelKind::Convolution, TargetKind::Cpu, has_unfolded_planes, unfolded_planes_efficiency},
    {"channel-lanes", KernelKind::Convolution, TargetKind::Cpu, has_channel_lanes, channel_lanes_efficiency},
    {"panels", KernelKind::Convolution, TargetKind::Cpu, has_convolution_by_panels, convolution_by_panels_efficiency},
    {"blocks", KernelKind::Convolution, TargetKind::Cpu, has_convolution_of_blocks, convolution_of_blocks_efficiency},
    {"floats", KernelKind::Convolution, TargetKind::Cpu, is_of_halves, convolution_in_floats_efficiency},
    {kSplit, KernelKind::Convolution, TargetKind::Cpu, has_split_convolution, split_convolution_efficiency},
    {"tiles-x6", KernelKind::Convolution, TargetKind::Cpu, has_tile_convolution<takes_six>,
     tile_convolution_efficiency<kSixSpeed>},
    {kTilesOfTwo, KernelKind::Convolution, TargetKind::Cpu, has_tile_convolution<takes_three>,
     tile_convolution_efficiency<kThreeSpeed>},
    {"tiles-bf16", KernelKind::Convolution, TargetKind::Cpu, has_tile_convolution<takes_one>,
     tile_convolution_efficiency<kOneSpeed>},
};

}  // namespace

std::vector<Implementation> cpu_convolution_implementations() { return {std::begin(kRows), std::end(kRows)}; }

}  // namespace gopt::planner
