#include "gopt/plan.h"

#include "buffers.h"

namespace gopt {

std::string to_string(KernelKind kind) {
  switch (kind) {
    case KernelKind::Convolution: return "convolution";
    case KernelKind::MatrixProduct: return "matrix-product";
    case KernelKind::Generated: return "generated";
    case KernelKind::Reorder: return "reorder";
  }
  return "";
}

}  // namespace gopt

namespace gopt::planner {

namespace {

// 3x3 convolutions of stride 1 on whole blocks of channels, where oneDNN has a Winograd algorithm (which its own
// automatic choice never takes).
bool has_winograd(const Plan& plan, const Kernel& kernel) {
  if (plan.target.kind != TargetKind::Cpu || kernel.kind != KernelKind::Convolution) return false;
  const Buffer &x = plan.buffer(kernel.input_buffers[0]), &w = plan.buffer(kernel.input_buffers[1]),
               &y = plan.buffer(kernel.output_buffers[0]);
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

// The cheapest implementation of a kernel, and its time.
void choose_implementation(const Plan& plan, Kernel& kernel, KernelCosts& costs) {
  if (kernel.kind == KernelKind::Convolution) kernel.implementation = "direct";
  kernel.estimated_ms = costs.time_ms(plan, kernel);
  if (!has_winograd(plan, kernel)) return;
  Kernel other = kernel;
  other.implementation = "winograd";
  other.estimated_ms = costs.time_ms(plan, other);
  if (other.estimated_ms < kernel.estimated_ms) kernel = std::move(other);
}

}  // namespace

Result<Plan> plan_once(const Graph& graph, const CoverOptions& options, KernelCosts& costs) {
  GOPT_ASSIGN_OR_RETURN(const Cover cover, cover_graph(graph, options));
  Plan plan = build_kernels(cover);
  place_buffers(plan);
  plan.estimated_ms = 0;
  for (Kernel& kernel : plan.kernels) {
    choose_implementation(plan, kernel, costs);
    plan.estimated_ms += kernel.estimated_ms;
  }
  return plan;
}

}  // namespace gopt::planner

namespace gopt {

Result<Plan> make_plan(const Graph& graph, const Target& target, KernelCosts& costs) {
  planner::CoverOptions options{target};
  GOPT_ASSIGN_OR_RETURN(Plan best, planner::plan_once(graph, options, costs));
  bool converts = false;
  for (const Buffer& b : best.buffers) converts |= !b.layout.is_plain();
  if (!converts) return best;
  options.convolution_layout = false;
  GOPT_ASSIGN_OR_RETURN(Plan plain, planner::plan_once(graph, options, costs));
  return plain.estimated_ms < best.estimated_ms ? plain : best;
}

}  // namespace gopt
