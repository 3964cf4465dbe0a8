// Windows over channels side by side on CUDA: depthwise convolutions and pools of channels last
// (codegen/cuda/runtime/gopt_channels.cuh).
#include "channels.h"

#include <algorithm>

#include "gopt/convolution_shape.h"
#include "gopt/node_attributes.h"

namespace gopt {

bool is_by_channels(const Kernel& kernel) { return kernel.implementation == kByChannels; }

ConvolutionShape pool_shape(const Plan& plan, const Kernel& kernel) {
  const Node& node = *kernel.nodes[0];
  ConvolutionShape shape;
  shape.src = plan.buffer(kernel.input_buffers[0]).dims;
  shape.dst = plan.buffer(kernel.output_buffers[0]).dims;
  shape.groups = shape.src[1];
  const std::vector<int64_t> window = ints_or(node, "kernel_shape", {}), ones(window.size(), 1);
  shape.weights = {shape.groups, 1};
  shape.weights.insert(shape.weights.end(), window.begin(), window.end());
  shape.strides = ints_or(node, "strides", ones);
  shape.dilations = ints_or(node, "dilations", ones);
  shape.pads = ints_or(node, "pads", std::vector<int64_t>(2 * window.size(), 0));
  shape.pads.resize(window.size());
  return shape;
}

}  // namespace gopt

namespace gopt::planner {
namespace {

// Whole chunks of sixteen bytes of channels, in the lines that they lie in.
bool has_chunks_of_channels(const Plan& plan, const Kernel& kernel) {
  constexpr int64_t kChunk = 16, kMost = int64_t{1} << 31;
  const Buffer &x = plan.buffer(kernel.input_buffers[0]), &y = plan.buffer(kernel.output_buffers[0]);
  const auto has_chunks = [&](const Buffer& buffer) {
    const auto size = static_cast<int64_t>(size_bytes(buffer.element));
    return buffer.layout.is_channels_last() && buffer.dims[1] * size % kChunk == 0 &&
           buffer.layout.line() * size % kChunk == 0 && buffer.size_bytes / size < kMost;
  };
  const bool is_number = x.element == ElementType::Float32 || is_half(x.element);
  return is_number && x.element == y.element && has_chunks(x) && has_chunks(y);
}

bool convolves_channels(const Plan& plan, const Kernel& kernel) {
  if (!kernel.nodes[0]->is(OpKind::Conv)) return false;
  constexpr size_t kAxes = 2;
  const ConvolutionShape shape = convolution_shape(plan, kernel);
  return shape.axes() == kAxes && shape.groups > 1 && shape.groups == shape.src[1] && shape.groups == shape.dst[1] &&
         has_chunks_of_channels(plan, kernel);
}

}  // namespace

bool pools_channels(const Plan& plan, const Kernel& kernel) {
  if (kernel.kind != KernelKind::Generated) return false;
  const Node& node = *kernel.nodes[0];
  const bool is_pool = kernel.nodes.size() == 1 && (node.is(OpKind::MaxPool) || node.is(OpKind::AveragePool));
  if (!is_pool || kernel.input_buffers.size() != 1 || kernel.output_buffers.size() != 1) return false;
  constexpr size_t kRank = 4;
  const auto automatic = node.attributes.find("auto_pad");
  const bool has_pads = automatic == node.attributes.end() || std::get<std::string>(automatic->second) == "NOTSET";
  return has_number_attributes(node) && has_pads && int_or(node, "ceil_mode", 0) == 0 &&
         plan.buffer(kernel.input_buffers[0]).dims.size() == kRank && node.outputs.size() == 1 &&
         has_chunks_of_channels(plan, kernel);
}

namespace {

bool any_loops(const Plan&, const Kernel&) { return true; }
double same_as_loops(const Plan&, const Kernel&) { return 0.1; }

}  // namespace

std::vector<Implementation> channel_implementations() {
  return {{kByChannels, KernelKind::Convolution, TargetKind::Cuda, convolves_channels, same_as_loops},
          {"", KernelKind::Generated, TargetKind::Cuda, any_loops, same_as_loops},
          {kByChannels, KernelKind::Generated, TargetKind::Cuda, pools_channels, same_as_loops}};
}

}  // namespace gopt::planner
