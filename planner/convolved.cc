#include "convolved.h"

#include <algorithm>

#include "gopt/convolution_shape.h"
#include "gopt/node_attributes.h"
#include "library_operands.h"

namespace gopt::planner {
namespace {

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

}  // namespace

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

}  // namespace gopt::planner
