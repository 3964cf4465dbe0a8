#include "gopt/portable.h"

#include <algorithm>

#include "gopt/node_attributes.h"

namespace gopt {
namespace {

bool has_window_in_padding(const Node& node) {
  if (!has_number_attributes(node)) return false;
  const std::vector<int64_t> kernel = ints_or(node, "kernel_shape", {}), pads = ints_or(node, "pads", {});
  for (size_t k = 0; k < pads.size() && !kernel.empty(); k++)
    if (pads[k] >= kernel[k % kernel.size()]) return true;
  return false;
}

bool lacks_64_bits(OpKind kind) {
  using enum OpKind;
  constexpr OpKind kOnes[] = {Conv,
                              ConvTranspose,
                              AveragePool,
                              GlobalAveragePool,
                              GlobalMaxPool,
                              Erf,
                              Gelu,
                              Elu,
                              Selu,
                              LeakyRelu,
                              PRelu,
                              HardSigmoid,
                              HardSwish,
                              Softplus,
                              Softsign,
                              Mish,
                              Sinh,
                              ThresholdedRelu,
                              InstanceNormalization};
  return std::ranges::find(kOnes, kind) != std::end(kOnes);
}

}  // namespace

std::optional<std::string> why_refused_by_runtimes(const Node& node) {
  if (node.op == OpKind::Opaque || node.outputs.empty()) return std::nullopt;
  if (node.is(OpKind::AveragePool) && has_window_in_padding(node)) return "its pads are no smaller than its window";
  if (node.outputs[0].element == ElementType::Float64 && lacks_64_bits(node.op)) return "there is no kernel of f64";
  return std::nullopt;
}

}  // namespace gopt
