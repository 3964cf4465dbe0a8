#include "implementations.h"

#include <algorithm>
#include <cmath>

#include "attention.h"
#include "channels.h"
#include "gopt/convolution_shape.h"
#include "gopt/node_attributes.h"
#include "gopt/runtime/gopt_amx.h"
#include "gopt/runtime/gopt_few_rows.h"
#include "gopt/tile.h"
#include "patches.h"
#include "tiles.h"
#include "vectors.h"
#include "warpgroups.h"

namespace gopt::planner {
namespace {

const Buffer& image(const Plan& plan, const Kernel& kernel) { return plan.buffer(kernel.input_buffers[0]); }
const Buffer& weights(const Plan& plan, const Kernel& kernel) { return plan.buffer(kernel.input_buffers[1]); }
const Buffer& result(const Plan& plan, const Kernel& kernel) { return plan.buffer(kernel.output_buffers[0]); }

bool any(const Plan&, const Kernel&) { return true; }
bool is_of_integers(const Plan&, const Kernel& kernel) { return kernel.integers.has_value(); }
bool is_not_of_integers(const Plan&, const Kernel& kernel) { return !kernel.integers; }

// ---- arithmetic of 16 bits on the CPU ----

bool is_of_halves(const Plan& plan, const Kernel& kernel) { return is_half(image(plan, kernel).element); }
bool is_of_floats(const Plan& plan, const Kernel& kernel) {
  return image(plan, kernel).element == ElementType::Float32 && result(plan, kernel).element == ElementType::Float32;
}
// As a product of three times the depth (codegen/cpu/runtime/gopt_split.h).
bool splits_floats(const Plan& plan, const Kernel& kernel) {
  return may_lose_digits(plan, kernel) && is_of_floats(plan, kernel);
}

// ---- matrix products ----

double product_efficiency(const Plan& plan, const Kernel& kernel) {
  const std::vector<int64_t>& dims = result(plan, kernel).dims;
  const double rows = static_cast<double>(element_count(dims)) / static_cast<double>(std::max<int64_t>(1, dims.back()));
  const bool packed = weights(plan, kernel).place == BufferPlace::Weight;
  return (packed ? 0.8 : 0.5) * std::min(1.0, (rows + 1) / 16);
}

// Rows of the product where the right operand is one matrix of weights, and the left one lies as it is; else none.
int64_t rows_by_weights(const Plan& plan, const Kernel& kernel) {
  const std::vector<int64_t>&y = result(plan, kernel).dims, &w = weights(plan, kernel).dims;
  const bool is_matrix = element_count(std::span(w).first(w.size() - 2)) == 1;
  if (weights(plan, kernel).place != BufferPlace::Weight || !is_matrix) return 0;
  if (kernel.nodes[0]->is(OpKind::Gemm) && int_or(*kernel.nodes[0], "transA", 0) != 0) return 0;
  // The runtime knows how many there are.
  const Shape& shape = shape_of(result(plan, kernel));
  const bool is_open = !std::all_of(shape.begin(), shape.end(), [](const Index& i) { return i.is_constant(); });
  if (is_open && !plan.target.open.empty()) return 0;
  return element_count(y) / std::max<int64_t>(1, y.back());
}
// Loops of our own that read each weight once (codegen/cpu/runtime/gopt_rows.h).
bool has_few_rows(const Plan& plan, const Kernel& kernel) {
  if (!is_of_floats(plan, kernel) && !is_of_halves(plan, kernel)) return false;
  const int64_t rows = rows_by_weights(plan, kernel);
  return rows >= 1 && rows <= gopt_runtime::kMostRows;
}
double few_rows_efficiency(const Plan&, const Kernel&) { return 0.6; }

// In loops of our own, by panels of weights (codegen/cpu/runtime/gopt_panels.h): of so many rows that sums fill the
// registers. Their measured times decide.
bool has_panels(const Plan& plan, const Kernel& kernel) {
  constexpr int64_t kFewestRows = 6;
  return is_of_floats(plan, kernel) && rows_by_weights(plan, kernel) >= kFewestRows;
}
double panels_efficiency(const Plan& plan, const Kernel& kernel) { return 0.95 * product_efficiency(plan, kernel); }

double product_in_floats_efficiency(const Plan& plan, const Kernel& kernel) {
  return 0.8 * product_efficiency(plan, kernel);
}

// Matrices that lie row by row.
bool has_split_product(const Plan& plan, const Kernel& kernel) {
  const Node& node = *kernel.nodes[0];
  const bool is_transposed =
      node.is(OpKind::Gemm) && (int_or(node, "transA", 0) != 0 ||
                                (int_or(node, "transB", 0) != 0 && weights(plan, kernel).place != BufferPlace::Weight));
  return splits_floats(plan, kernel) && !is_transposed && plan.target.open.empty();
}
// What is measured decides: units for 16 bits are between a third and sixteen times as fast as those for floats.
double split_product_efficiency(const Plan& plan, const Kernel& kernel) { return product_efficiency(plan, kernel) / 3; }

// ---- products of tiles on the CPU (codegen/cpu/runtime/gopt_tiles.h) ----

// Floats as three terms have all their digits: whatever the precision.
bool takes_six(const Plan& plan, const Kernel& kernel) { return plan.target.has_tiles && is_of_floats(plan, kernel); }
bool takes_three(const Plan& plan, const Kernel& kernel) {
  return plan.target.has_tiles && splits_floats(plan, kernel);
}
bool takes_one(const Plan& plan, const Kernel& kernel) { return plan.target.has_tiles && is_of_halves(plan, kernel); }

// Of what others reach in the same precision, as measured over many shapes (docs/costs.md): which is faster for one
// kernel on one machine is for its times to say, and a plan by estimates has none on tiles.
constexpr double kSixSpeed = 0.8, kThreeSpeed = 0.9, kOneSpeed = 0.8;

template <bool (*takes)(const Plan&, const Kernel&)>
bool has_tile_product(const Plan& plan, const Kernel& kernel) {
  return takes(plan, kernel) && rows_by_weights(plan, kernel) >= 1;
}
template <const double& speed>
double tile_product_efficiency(const Plan& plan, const Kernel& kernel) {
  return speed * product_efficiency(plan, kernel);
}

// ---- convolutions ----

struct Convolved {
  double groups, in, out;       // channels of a group
  double taps, positions;       // of the kernel, of the output
  double operations, elements;  // elements: of source and destination
  bool transposed, plain, blocked;
  double lanes;  // channels of a block of the result, or what they are elsewhere
};
// A transposed one in steps of one is a convolution with its kernel turned over, as the runtime computes it.
bool is_forward(const Plan& plan, const Kernel& kernel) {
  const Node& node = *kernel.nodes[0];
  if (!node.is(OpKind::ConvTranspose)) return true;
  const std::vector<int64_t> window(weights(plan, kernel).dims.begin() + 2, weights(plan, kernel).dims.end()),
      ones(window.size(), 1), strides = ints_or(node, "strides", ones), dilations = ints_or(node, "dilations", ones);
  if (plan.target.kind != TargetKind::Cpu || weights(plan, kernel).place != BufferPlace::Weight) return false;
  if (image(plan, kernel).element != ElementType::Float32 || !plan.target.open.empty()) return false;
  const std::vector<int64_t> pads = pads_before(plan, kernel);
  for (size_t d = 0; d < window.size(); d++)
    if (strides[d] != 1 || (window[d] - 1) * dilations[d] < pads[d]) return false;
  return true;
}

Convolved convolved(const Plan& plan, const Kernel& kernel) {
  const Buffer &x = image(plan, kernel), &w = weights(plan, kernel), &y = result(plan, kernel);
  const auto count = [](std::span<const int64_t> dims) { return static_cast<double>(element_count(dims)); };
  Convolved c{};
  c.transposed = !is_forward(plan, kernel);
  c.groups = static_cast<double>(int_or(*kernel.nodes[0], "group", 1));
  c.in = static_cast<double>(x.dims[1]) / c.groups;
  c.out = static_cast<double>(y.dims[1]) / c.groups;
  c.taps = count(std::span(w.dims).subspan(2));
  c.positions = static_cast<double>(y.dims[0]) * count(std::span(y.dims).subspan(2));
  c.operations = 2 * (c.transposed ? count(x.dims) * c.out : count(y.dims) * c.in) * c.taps;
  c.elements = count(x.dims) + count(y.dims);
  c.plain = y.layout.is_plain();
  c.blocked = y.layout.is_blocked();
  c.lanes = c.blocked ? y.layout.lanes() : 16;
  return c;
}

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

// Four products an instruction where one of floats does one (codegen/cpu/runtime/gopt_integer.h).
constexpr double kIntegerSpeed = 3.2;
double integer_convolution_efficiency(const Plan& plan, const Kernel& kernel) {
  const Convolved c = convolved(plan, kernel);
  if (c.in == 1 && c.out == 1) return 0.25;
  return kIntegerSpeed * whole(c.out, 16) * whole(c.in * c.taps, 4);
}
double integer_product_efficiency(const Plan& plan, const Kernel& kernel) {
  const bool packed = weights(plan, kernel).place == BufferPlace::Weight;
  return kIntegerSpeed * (packed ? 0.9 : 0.5);
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

// ---- convolutions on CUDA: plain tensors or channels last ----

// Channels of the image filled up to a block: for tiles.
bool is_filled_up(const Plan& plan, const Kernel& kernel) { return image(plan, kernel).layout.is_blocked(); }
bool is_channels_last(const Plan& plan, const Kernel& kernel) { return result(plan, kernel).layout.is_channels_last(); }

// Few channels in a group are slow.
double cuda_efficiency(const Plan& plan, const Kernel& kernel) {
  const Convolved c = convolved(plan, kernel);
  return c.groups > 1 && c.in < 16 ? 0.12 : 0.33;
}
// What cuDNN has for floats with channels last depends on its version and the device: nothing is expected of it, so
// that it is taken by its measured times alone. Its kernels for 16 bits are of that layout, and convert other images.
double cudnn_efficiency(const Plan& plan, const Kernel& kernel) {
  const bool is_last = is_channels_last(plan, kernel), halves = is_half(image(plan, kernel).element);
  const double share = halves ? (is_last ? 1 : 0.4) : is_last ? 0.1 : 1;
  return share * cuda_efficiency(plan, kernel);
}
double fastest_efficiency(const Plan& plan, const Kernel& kernel) {
  return (is_half(image(plan, kernel).element) ? 0.5 : 1) * cuda_efficiency(plan, kernel);
}

bool has_cudnn(const Plan& plan, const Kernel& kernel) {
  if (is_filled_up(plan, kernel)) return false;
  if (is_channels_last(plan, kernel) && convolved(plan, kernel).groups > 1) return false;
  return convolution_shape(plan, kernel).pads_alike();
}

constexpr int64_t kMostUnfolded = int64_t{64} << 20;  // elements: the runtime has 256 MiB for floats

// A transposed one as a product that gives each tap its part of each position, which are floats and are added up after.
bool has_folded(const Plan& plan, const Kernel& kernel, const ConvolutionShape& shape) {
  constexpr int64_t kMostResults = int64_t{1} << 31;  // which it counts in 32 bits
  const std::vector<int64_t>&w = shape.weights, &x = shape.src, &y = shape.dst;
  return (shape.groups == 1 || !is_channels_last(plan, kernel)) &&
         element_count(std::vector<int64_t>{x[0], y[1], w[2], w[3], x[2], x[3]}) <= kMostUnfolded &&
         element_count(y) < kMostResults;
}

// A product over windows, which the runtime unfolds into at most 256 MiB; with channels last those that are the image.
bool has_unfolded(const Plan& plan, const Kernel& kernel) {
  constexpr size_t kUnfoldedAxes = 2;
  const ConvolutionShape shape = convolution_shape(plan, kernel);
  if (is_filled_up(plan, kernel) || shape.axes() != kUnfoldedAxes) return false;
  if (shape.transposed) return has_folded(plan, kernel, shape);
  if (is_channels_last(plan, kernel)) return shape.groups == 1 && shape.is_pointwise();
  const std::vector<int64_t>&w = shape.weights, &x = shape.src, &y = shape.dst;
  return element_count(std::vector<int64_t>{x[0], x[1], w[2], w[3], y[2], y[3]}) <= kMostUnfolded;
}
// Windows are written and read again: a byte takes the time of a dozen operations at the peak, which is another one for
// each type.
double unfolded_efficiency(const Plan& plan, const Kernel& kernel) {
  const Convolved c = convolved(plan, kernel);
  const ConvolutionShape shape = convolution_shape(plan, kernel);
  const bool unfolds = shape.transposed || !shape.is_pointwise(), halves = is_half(image(plan, kernel).element);
  const double share = cuda_efficiency(plan, kernel) * (c.groups > 1 || (halves && unfolds) ? 0.5 : 0.95);
  if (!unfolds) return share;
  const double windows =
      shape.transposed ? 4 * c.out * static_cast<double>(shape.src[0] * element_count(std::span(shape.src).subspan(2)))
                       : (halves ? 2 : 4) * c.in * c.positions;
  const double bytes = 2 * windows * c.groups * c.taps;
  const double operations_a_byte = 12 * (halves ? 6 : is_tf32(plan, kernel) ? 3 : 1);
  return c.operations / (c.operations / share + bytes * operations_a_byte);
}

// What lies in longer lines is for kernels of ours.
bool has_own_lines(const Plan& plan, const Kernel& kernel) {
  const auto has_own = [&](BufferId id) { return plan.buffer(id).layout.line() == 0; };
  return std::all_of(kernel.input_buffers.begin(), kernel.input_buffers.end(), has_own) &&
         has_own(kernel.output_buffers[0]);
}
bool takes_cudnn(const Plan& plan, const Kernel& kernel) {
  return has_cudnn(plan, kernel) && has_own_lines(plan, kernel);
}
// cuDNN's algorithms by their numbers there: implicit products, without and with indices made before, and explicit
// ones; Winograd's in one kernel or three. Which it has for a kernel is known when it is asked. Of transposed ones the
// first alone has sums in a fixed order.
bool takes_forward(const Plan& plan, const Kernel& kernel) {
  return takes_cudnn(plan, kernel) && !convolved(plan, kernel).transposed;
}
bool takes_explicit(const Plan& plan, const Kernel& kernel) {
  return takes_forward(plan, kernel) && !is_channels_last(plan, kernel);
}
bool takes_cudnn_winograd(const Plan& plan, const Kernel& kernel) {
  const ConvolutionShape shape = convolution_shape(plan, kernel);
  const std::vector<int64_t> window(shape.weights.begin() + 2, shape.weights.end());
  return takes_explicit(plan, kernel) && window == std::vector<int64_t>{3, 3} &&
         shape.strides == std::vector<int64_t>{1, 1};
}
// Positions in longer lines are rows of a matrix in longer lines, where the library does all that follows.
bool takes_unfolded(const Plan& plan, const Kernel& kernel) {
  const auto is_fused = [](const Epilogue& step) {
    return step.kind != Epilogue::Kind::Activation || step.activation.kind == ActivationKind::Relu;
  };
  const bool is_of_lines = is_channels_last(plan, kernel) && !convolution_shape(plan, kernel).transposed &&
                           std::ranges::all_of(kernel.epilogues, is_fused);
  return has_unfolded(plan, kernel) && (is_of_lines || has_own_lines(plan, kernel));
}

bool has_cuda_library(const Plan& plan, const Kernel& kernel) {
  return has_cudnn(plan, kernel) || has_unfolded(plan, kernel);
}
// Of plain tensors one of them always works.
bool has_fastest(const Plan& plan, const Kernel& kernel) {
  return !is_channels_last(plan, kernel) && has_cuda_library(plan, kernel);
}

// A thread an element: for what neither the libraries nor tiles can do, and where an element takes few multiplications.
bool has_generated(const Plan& plan, const Kernel& kernel) {
  const Convolved c = convolved(plan, kernel);
  constexpr double kFew = 64;
  const bool has_others = takes_cudnn(plan, kernel) || (takes_unfolded(plan, kernel) && !is_transposed(kernel)) ||
                          convolves_by_tiles(plan, kernel) || transposes_by_tiles(plan, kernel);
  return c.in * c.taps <= kFew || !has_others;
}
double generated_efficiency(const Plan&, const Kernel&) { return 0.1; }

// Whose floats are sums of two terms.
constexpr std::string_view kSplit = "bf16x3", kTilesOfTwo = "tiles-x3";

constexpr Implementation kImplementations[] = {
    {"direct", KernelKind::Convolution, TargetKind::Cpu, is_not_of_integers, direct_efficiency},
    {"winograd", KernelKind::Convolution, TargetKind::Cpu, has_winograd, winograd_efficiency},
    {"direct", KernelKind::MatrixProduct, TargetKind::Cpu, is_not_of_integers, product_efficiency},
    {"integers", KernelKind::Convolution, TargetKind::Cpu, is_of_integers, integer_convolution_efficiency},
    {"integers", KernelKind::MatrixProduct, TargetKind::Cpu, is_of_integers, integer_product_efficiency},
    {"few-rows", KernelKind::MatrixProduct, TargetKind::Cpu, has_few_rows, few_rows_efficiency},
    {"channels-last", KernelKind::Convolution, TargetKind::Cpu, has_channels_last, channels_last_efficiency},
    {"planar", KernelKind::Convolution, TargetKind::Cpu, has_planar, planar_efficiency},
    {"unfolded", KernelKind::Convolution, TargetKind::Cpu, has_unfolded_planes, unfolded_planes_efficiency},
    {"channel-lanes", KernelKind::Convolution, TargetKind::Cpu, has_channel_lanes, channel_lanes_efficiency},
    {"panels", KernelKind::Convolution, TargetKind::Cpu, has_convolution_by_panels, convolution_by_panels_efficiency},
    {"blocks", KernelKind::Convolution, TargetKind::Cpu, has_convolution_of_blocks, convolution_of_blocks_efficiency},
    {"panels", KernelKind::MatrixProduct, TargetKind::Cpu, has_panels, panels_efficiency},
    {"floats", KernelKind::Convolution, TargetKind::Cpu, is_of_halves, convolution_in_floats_efficiency},
    {"floats", KernelKind::MatrixProduct, TargetKind::Cpu, is_of_halves, product_in_floats_efficiency},
    {kSplit, KernelKind::Convolution, TargetKind::Cpu, has_split_convolution, split_convolution_efficiency},
    {kSplit, KernelKind::MatrixProduct, TargetKind::Cpu, has_split_product, split_product_efficiency},
    {"tiles-x6", KernelKind::Convolution, TargetKind::Cpu, has_tile_convolution<takes_six>,
     tile_convolution_efficiency<kSixSpeed>},
    {"tiles-x6", KernelKind::MatrixProduct, TargetKind::Cpu, has_tile_product<takes_six>,
     tile_product_efficiency<kSixSpeed>},
    {kTilesOfTwo, KernelKind::Convolution, TargetKind::Cpu, has_tile_convolution<takes_three>,
     tile_convolution_efficiency<kThreeSpeed>},
    {kTilesOfTwo, KernelKind::MatrixProduct, TargetKind::Cpu, has_tile_product<takes_three>,
     tile_product_efficiency<kThreeSpeed>},
    {"tiles-bf16", KernelKind::Convolution, TargetKind::Cpu, has_tile_convolution<takes_one>,
     tile_convolution_efficiency<kOneSpeed>},
    {"tiles-bf16", KernelKind::MatrixProduct, TargetKind::Cpu, has_tile_product<takes_one>,
     tile_product_efficiency<kOneSpeed>},
    {"fastest", KernelKind::Convolution, TargetKind::Cuda, has_fastest, fastest_efficiency, true},
    {"cudnn:1", KernelKind::Convolution, TargetKind::Cuda, takes_cudnn, cudnn_efficiency},
    {"cudnn:0", KernelKind::Convolution, TargetKind::Cuda, takes_forward, cudnn_efficiency},
    {"cudnn:2", KernelKind::Convolution, TargetKind::Cuda, takes_explicit, cudnn_efficiency},
    {"cudnn:6", KernelKind::Convolution, TargetKind::Cuda, takes_cudnn_winograd, cudnn_efficiency},
    {"cudnn:7", KernelKind::Convolution, TargetKind::Cuda, takes_cudnn_winograd, cudnn_efficiency},
    {"unfolded", KernelKind::Convolution, TargetKind::Cuda, takes_unfolded, unfolded_efficiency},
    {kGenerated, KernelKind::Convolution, TargetKind::Cuda, has_generated, generated_efficiency},
    {"", KernelKind::MatrixProduct, TargetKind::Cuda, any, product_efficiency},
};

}  // namespace

std::span<const Implementation> implementations() {
  static const std::vector<Implementation> rows = [] {
    std::vector<Implementation> all(std::begin(kImplementations), std::end(kImplementations));
    for (Implementation& row : tile_implementations()) all.push_back(row);
    for (Implementation& row : warpgroup_implementations()) all.push_back(row);
    for (Implementation& row : patch_implementations()) all.push_back(row);
    for (Implementation& row : vector_implementations()) all.push_back(row);
    for (Implementation& row : attention_implementations()) all.push_back(row);
    for (Implementation& row : channel_implementations()) all.push_back(row);
    return all;
  }();
  return rows;
}

}  // namespace gopt::planner

namespace gopt {

bool is_of_two_terms(const Kernel& kernel) {
  const std::string& name = kernel.implementation;
  return name == planner::kSplit || name == planner::kTilesOfTwo || name == kAttentionOfThree;
}

namespace {

// Products of a few lines by each matrix take as long as this takes to be read, whatever they are computed in.
bool waits_for_matrices(const Plan& plan, const Kernel& kernel) {
  constexpr int64_t kMostLines = 4;
  if (kernel.kind != KernelKind::MatrixProduct) return false;
  const std::vector<int64_t>&right = plan.buffer(kernel.input_buffers[1]).dims,
        &result = plan.buffer(kernel.output_buffers[0]).dims;
  const bool is_one_matrix = element_count(std::span(right).first(right.size() - 2)) == 1;
  const int64_t lines = element_count(std::span(result).first(result.size() - 1));
  return (is_one_matrix ? lines : result[result.size() - 2]) <= kMostLines;
}

}  // namespace

bool is_tf32(const Plan& plan, const Kernel& kernel) {
  return planner::is_library(kernel.kind) && plan.target.precision == Precision::Tf32 &&
         plan.buffer(kernel.input_buffers[0]).element == ElementType::Float32 && !waits_for_matrices(plan, kernel);
}

}  // namespace gopt

namespace gopt::planner {

const Implementation& implementation_of(const Plan& plan, const Kernel& kernel) {
  for (const Implementation& row : implementations())
    if (row.kind == kernel.kind && row.target == plan.target.kind && row.name == kernel.implementation) return row;
  throw InternalError("kernel " + kernel.name + " has no implementation '" + kernel.implementation + "'");
}

}  // namespace gopt::planner
