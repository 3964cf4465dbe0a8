#include "gopt/plan.h"

#include "buffers.h"
#include "implementations.h"

namespace gopt {

std::string to_string(KernelKind kind) {
  switch (kind) {
    case KernelKind::Convolution: return "convolution";
    case KernelKind::Pooling: return "pooling";
    case KernelKind::MatrixProduct: return "matrix-product";
    case KernelKind::Generated: return "generated";
    case KernelKind::Reorder: return "reorder";
  }
  return "";
}

}  // namespace gopt

namespace gopt::planner {

namespace {

// The cheapest implementation of a kernel, and its time.
void choose_implementation(const Plan& plan, Kernel& kernel, KernelCosts& costs) {
  std::optional<Kernel> best;
  for (const Implementation& row : implementations()) {
    if (row.kind != kernel.kind || row.target != plan.target.kind || !row.accepts(plan, kernel)) continue;
    Kernel by_row = kernel;
    by_row.implementation = row.name;
    by_row.estimated_ms = costs.time_ms(plan, by_row);
    if (!best || by_row.estimated_ms < best->estimated_ms) best = std::move(by_row);
  }
  if (best)
    kernel = *std::move(best);
  else
    kernel.estimated_ms = costs.time_ms(plan, kernel);  // loops of our own
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
