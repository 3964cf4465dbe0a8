// Windows over channels side by side on CUDA: depthwise convolutions and pools of channels last
// (codegen/cuda/runtime/gopt_channels.cuh).
#include "channels.h"

#include <algorithm>

#include "gopt/convolution_shape.h"
#include "gopt/node_attributes.h"

namespace gopt {

const ChannelTiles* channel_tiles_of(const Kernel& kernel) {
  const auto* found = std::ranges::find(kChannelTiles, kernel.implementation, &ChannelTiles::name);
  return found == std::end(kChannelTiles) ? nullptr : found;
}

bool is_by_channels(const Kernel& kernel) {
  return kernel.implementation == kByChannels || kernel.implementation == kByLinesOfChannels ||
         channel_tiles_of(kernel);
}

bool is_mean_of_images(const Kernel& kernel) { return kernel.nodes[0]->is(OpKind::GlobalAveragePool); }

ConvolutionShape window_shape(const Plan& plan, const Kernel& kernel) {
  if (kernel.kind == KernelKind::Convolution) return convolution_shape(plan, kernel);
  const Node& node = *kernel.nodes[0];
  ConvolutionShape shape;
  shape.src = plan.buffer(kernel.input_buffers[0]).dims;
  shape.dst = plan.buffer(kernel.output_buffers[0]).dims;
  shape.groups = shape.src[1];
  const std::vector<int64_t> window = is_mean_of_images(kernel)
                                          ? std::vector<int64_t>(shape.src.begin() + 2, shape.src.end())
                                          : ints_or(node, "kernel_shape", {});
  const std::vector<int64_t> ones(window.size(), 1);
  shape.weights = {shape.groups, 1};
  shape.weights.insert(shape.weights.end(), window.begin(), window.end());
  shape.strides = ints_or(node, "strides", ones);
  shape.dilations = ints_or(node, "dilations", ones);
  shape.pads = ints_or(node, "pads", std::vector<int64_t>(2 * window.size(), 0));
  shape.pads.resize(window.size());
  return shape;
}

WindowOfPlanes window_of_planes(const ConvolutionShape& shape) {
  constexpr size_t kVolume = 3;
  const size_t y = shape.axes() - 2, x = y + 1;
  WindowOfPlanes window{shape.axes() == kVolume ? shape.weights[2] : 1, shape.weights[2 + y], shape.weights[2 + x]};
  if (shape.strides[y] == shape.strides[x]) window.step = shape.strides[x];
  window.is_undilated = shape.dilations[y] == 1 && shape.dilations[x] == 1;
  return window;
}

bool has_known_window(const ConvolutionShape& shape) {
  constexpr int64_t kSides[] = {2, 3, 5};
  constexpr size_t kAxes = 2;
  return shape.axes() == kAxes && shape.weights[2] == shape.weights[3] &&
         std::ranges::count(kSides, shape.weights[2]) > 0;
}

}  // namespace gopt

namespace gopt::planner {
namespace {

// Whole chunks of sixteen bytes of channels, in the lines that they lie in: of images of one position that is however
// they lie.
bool has_chunks_of_channels(const Plan& plan, const Kernel& kernel) {
  constexpr int64_t kChunk = 16, kMost = int64_t{1} << 31;
  const Buffer &x = plan.buffer(kernel.input_buffers[0]), &y = plan.buffer(kernel.output_buffers[0]);
  const auto has_chunks = [&](const Buffer& buffer) {
    const auto size = static_cast<int64_t>(size_bytes(buffer.element));
    const bool is_plain_position = buffer.layout == Layout() && element_count(std::span(buffer.dims).subspan(2)) == 1;
    return (buffer.layout.is_channels_last() || is_plain_position) && buffer.dims[1] * size % kChunk == 0 &&
           buffer.layout.line() * size % kChunk == 0 && buffer.size_bytes / size < kMost;
  };
  const bool is_number = x.element == ElementType::Float32 || is_half(x.element);
  return is_number && x.element == y.element && has_chunks(x) && has_chunks(y);
}

bool convolves_channels(const Plan& plan, const Kernel& kernel) {
  if (!kernel.nodes[0]->is(OpKind::Conv)) return false;
  const ConvolutionShape shape = convolution_shape(plan, kernel);
  return shape.groups > 1 && shape.groups == shape.src[1] && shape.groups == shape.dst[1] &&
         has_chunks_of_channels(plan, kernel);
}

}  // namespace

bool pools_channels(const Plan& plan, const Kernel& kernel) {
  if (kernel.kind != KernelKind::Generated) return false;
  const Node& node = *kernel.nodes[0];
  const bool is_pool = kernel.nodes.size() == 1 && (node.is(OpKind::MaxPool) || node.is(OpKind::AveragePool));
  if (!is_pool || kernel.input_buffers.size() != 1 || kernel.output_buffers.size() != 1) return false;
  constexpr size_t kImage = 4, kVolume = 5;
  const size_t rank = plan.buffer(kernel.input_buffers[0]).dims.size();
  const auto automatic = node.attributes.find("auto_pad");
  const bool has_pads = automatic == node.attributes.end() || std::get<std::string>(automatic->second) == "NOTSET";
  // A window that begins inside and ends beyond the padding: means over all of it divide by less than its extent.
  const bool ends_beyond = int_or(node, "ceil_mode", 0) != 0,
             counts_padding = node.is(OpKind::AveragePool) && int_or(node, "count_include_pad", 0) != 0;
  return has_number_attributes(node) && has_pads && !(ends_beyond && counts_padding) &&
         (rank == kImage || rank == kVolume) && node.outputs.size() == 1 && has_chunks_of_channels(plan, kernel);
}

namespace {

bool takes_means(const Plan& plan, const Kernel& kernel) {
  constexpr size_t kRank = 4;
  return kernel.nodes.size() == 1 && is_mean_of_images(kernel) && kernel.input_buffers.size() == 1 &&
         plan.buffer(kernel.input_buffers[0]).dims.size() == kRank && has_chunks_of_channels(plan, kernel);
}

bool goes_over_channels(const Plan& plan, const Kernel& kernel) {
  return pools_channels(plan, kernel) || takes_means(plan, kernel);
}

bool is_undilated(const ConvolutionShape& shape) {
  return std::ranges::all_of(shape.dilations, [](int64_t d) { return d == 1; });
}

// What windows side by side share is known when it is compiled: windows of a few sides, steps of one or two.
bool shares_windows(const Plan& plan, const Kernel& kernel) {
  if (!pools_channels(plan, kernel)) return false;
  const ConvolutionShape shape = window_shape(plan, kernel);
  return has_known_window(shape) && shape.strides[1] <= 2 && is_undilated(shape) && shape.dst[3] >= kPositionsOfLine;
}

// Fewer threads with more to do each: of some use where there are many.
bool has_many_threads(const Plan& plan, const Kernel& kernel) {
  constexpr int64_t kEnough = 132 * 256, kLanes = 8;
  const Buffer& y = plan.buffer(kernel.output_buffers[0]);
  return element_count(y.dims) / kLanes >= kEnough;
}

// Depthwise convolutions in steps of one or two both ways, by constant weights; of volumes the window may go over
// planes in any way. The window is known when it is compiled.
template <size_t number>
bool takes_rectangles(const Plan& plan, const Kernel& kernel) {
  constexpr int64_t kMostStep = 2, kMostSide = 31, kMostBytes = 96 * 1024;
  if (!convolves_channels(plan, kernel) || plan.buffer(kernel.input_buffers[1]).place != BufferPlace::Weight)
    return false;
  const ConvolutionShape shape = convolution_shape(plan, kernel);
  const WindowOfPlanes window = window_of_planes(shape);
  if (!window.is_undilated || window.step > kMostStep) return false;
  // Of an image, whose planes the kernel takes to be those of the result.
  constexpr size_t kVolume = 3;
  if (shape.axes() == kVolume && window.planes == 1) return false;
  if (std::max({window.planes, window.height, window.width}) > kMostSide) return false;
  const gopt_runtime::ChannelTileMemory memory =
      memory_of(kChannelTiles[number].rectangle, static_cast<int>(window.planes), static_cast<int>(window.height),
                static_cast<int>(window.width), static_cast<int>(window.step));
  return memory.all <= kMostBytes;
}

// What a thread makes is the more the more there is to make: of 200 thousand numbers two at a time are the fastest, of
// 400 thousand four, of two million eight (H200, windows of 3 by 3 to 7 by 7).
template <size_t number>
double share_of_best(const Plan& plan, const Kernel& kernel) {
  constexpr double kOfOne = 100000;
  const double numbers = static_cast<double>(element_count(plan.buffer(kernel.output_buffers[0]).dims)),
               best = std::clamp(numbers / kOfOne, 2.0, 8.0);
  return std::min(best / kChannelTiles[number].rectangle.along, kChannelTiles[number].rectangle.along / best);
}
template <size_t number>
double rectangles_efficiency(const Plan& plan, const Kernel& kernel) {
  return 0.4 * share_of_best<number>(plan, kernel);
}
template <size_t number>
bool may_be_best(const Plan& plan, const Kernel& kernel) {
  constexpr double kNear = 0.35;
  return share_of_best<number>(plan, kernel) >= kNear;
}
template <size_t number>
Implementation rectangles() {
  return {kChannelTiles[number].name, KernelKind::Convolution,       TargetKind::Cuda,
          takes_rectangles<number>,   rectangles_efficiency<number>, false,
          may_be_best<number>};
}

bool any_loops(const Plan&, const Kernel&) { return true; }
double loops_efficiency(const Plan&, const Kernel&) { return 0.1; }
double efficiency(const Plan&, const Kernel&) { return 0.15; }
double lines_efficiency(const Plan& plan, const Kernel& kernel) { return has_many_threads(plan, kernel) ? 0.2 : 0.05; }

}  // namespace

std::vector<Implementation> channel_implementations() {
  return {rectangles<0>(),
          rectangles<1>(),
          rectangles<2>(),
          {kByChannels, KernelKind::Convolution, TargetKind::Cuda, convolves_channels, efficiency},
          // Of what is not measured the first is taken.
          {kByLinesOfChannels, KernelKind::Generated, TargetKind::Cuda, shares_windows, lines_efficiency, false,
           has_many_threads},
          {kByChannels, KernelKind::Generated, TargetKind::Cuda, goes_over_channels, efficiency},
          {"", KernelKind::Generated, TargetKind::Cuda, any_loops, loops_efficiency}};
}

}  // namespace gopt::planner
