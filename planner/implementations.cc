#include "implementations.h"

#include <algorithm>
#include <optional>

namespace gopt::planner {
namespace {

const Buffer& image(const Plan& plan, const Kernel& kernel) { return plan.buffer(kernel.input_buffers[0]); }
const Buffer& weights(const Plan& plan, const Kernel& kernel) { return plan.buffer(kernel.input_buffers[1]); }
const Buffer& result(const Plan& plan, const Kernel& kernel) { return plan.buffer(kernel.output_buffers[0]); }

bool any(const Plan&, const Kernel&) { return true; }

// ---- matrix products ----

double product_efficiency(const Plan& plan, const Kernel& kernel) {
  const std::vector<int64_t>& dims = result(plan, kernel).dims;
  const double rows = static_cast<double>(element_count(dims)) / static_cast<double>(std::max<int64_t>(1, dims.back()));
  const bool packed = weights(plan, kernel).place == BufferPlace::Weight;
  return (packed ? 0.8 : 0.5) * std::min(1.0, (rows + 1) / 16);
}

// ---- convolutions ----

// Few channels in a group, or plain tensors: oneDNN's slow paths. Nothing where neither is the case.
std::optional<double> efficiency_of_slow_paths(const Plan& plan, const Kernel& kernel) {
  const Buffer& w = weights(plan, kernel);
  const bool grouped = w.dims[1] != image(plan, kernel).dims[1];
  if (grouped && w.dims[1] < 16) return 0.12;
  if (result(plan, kernel).layout.is_plain()) return 0.33;
  return std::nullopt;
}
// Of what large images reach.
double share_of_small_images(const Plan& plan, const Kernel& kernel) {
  const std::vector<int64_t>& dims = result(plan, kernel).dims;
  return std::min(1.0, static_cast<double>(dims[0] * dims[2] * dims[3]) / 64 + 0.25);
}

double direct_efficiency(const Plan& plan, const Kernel& kernel) {
  if (const auto slow = efficiency_of_slow_paths(plan, kernel)) return *slow;
  const Buffer& w = weights(plan, kernel);
  return share_of_small_images(plan, kernel) * (w.dims[2] * w.dims[3] == 1 ? 0.82 : 0.95);
}

// 3x3 convolutions of stride 1 on whole blocks of channels, where oneDNN has a Winograd algorithm (which its own
// automatic choice never takes).
bool has_winograd(const Plan& plan, const Kernel& kernel) {
  const Buffer &x = image(plan, kernel), &w = weights(plan, kernel), &y = result(plan, kernel);
  if (!x.layout.is_blocked() || !(y.layout == x.layout)) return false;
  const int lanes = x.layout.lanes();
  if (w.dims[2] != 3 || w.dims[3] != 3 || w.dims[0] % lanes != 0 || w.dims[1] % lanes != 0 || w.dims[1] != x.dims[1])
    return false;
  const Attributes& a = kernel.nodes[0]->attributes;
  auto all = [&a](const char* name, int64_t low, int64_t high) {
    auto it = a.find(name);
    if (it == a.end()) return true;
    for (const Index& i : std::get<std::vector<Index>>(it->second))
      if (!i.is_constant() || i.constant() < low || i.constant() > high) return false;
    return true;
  };
  return all("strides", 1, 1) && all("dilations", 1, 1) && all("pads", 0, 1);
}

// Transforms cost more of what they save on few channels, and tiles of 4 x 4 waste the border of small images.
double winograd_efficiency(const Plan& plan, const Kernel& kernel) {
  const Buffer &w = weights(plan, kernel), &y = result(plan, kernel);
  const auto channels = static_cast<double>(std::min(w.dims[0], w.dims[1]));
  const auto covered = [](int64_t n) { return static_cast<double>(n) / static_cast<double>((n + 3) / 4 * 4); };
  const double fill = covered(y.dims[2]) * covered(y.dims[3]);
  return share_of_small_images(plan, kernel) * 0.95 * 1.75 * fill * std::min(1.0, 0.75 + channels / 256);
}

constexpr Implementation kImplementations[] = {
    {"direct", KernelKind::Convolution, TargetKind::Cpu, any, direct_efficiency},
    {"winograd", KernelKind::Convolution, TargetKind::Cpu, has_winograd, winograd_efficiency},
    {"", KernelKind::MatrixProduct, TargetKind::Cpu, any, product_efficiency},
    {"direct", KernelKind::Convolution, TargetKind::Cuda, any, direct_efficiency},
    {"", KernelKind::MatrixProduct, TargetKind::Cuda, any, product_efficiency},
};

}  // namespace

std::span<const Implementation> implementations() { return kImplementations; }

const Implementation& implementation_of(const Plan& plan, const Kernel& kernel) {
  for (const Implementation& row : kImplementations)
    if (row.kind == kernel.kind && row.target == plan.target.kind && row.name == kernel.implementation) return row;
  throw InternalError("kernel " + kernel.name + " has no implementation '" + kernel.implementation + "'");
}

}  // namespace gopt::planner
