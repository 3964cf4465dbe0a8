#include "cuda_convolutions.h"

#include <algorithm>

#include "convolved.h"
#include "gopt/convolution_shape.h"
#include "gopt/tile.h"
#include "library_operands.h"
#include "tiles.h"

namespace gopt::planner {
namespace {

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

constexpr Implementation kRows[] = {
    {"fastest", KernelKind::Convolution, TargetKind::Cuda, has_fastest, fastest_efficiency, true},
    {"cudnn:1", KernelKind::Convolution, TargetKind::Cuda, takes_cudnn, cudnn_efficiency},
    {"cudnn:0", KernelKind::Convolution, TargetKind::Cuda, takes_forward, cudnn_efficiency},
    {"cudnn:2", KernelKind::Convolution, TargetKind::Cuda, takes_explicit, cudnn_efficiency},
    {"cudnn:6", KernelKind::Convolution, TargetKind::Cuda, takes_cudnn_winograd, cudnn_efficiency},
    {"cudnn:7", KernelKind::Convolution, TargetKind::Cuda, takes_cudnn_winograd, cudnn_efficiency},
    {"unfolded", KernelKind::Convolution, TargetKind::Cuda, takes_unfolded, unfolded_efficiency},
    {kGenerated, KernelKind::Convolution, TargetKind::Cuda, has_generated, generated_efficiency},
};

}  // namespace

std::vector<Implementation> cuda_convolution_implementations() { return {std::begin(kRows), std::end(kRows)}; }

}  // namespace gopt::planner
