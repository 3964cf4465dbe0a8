#include "search/rewrite_cost.h"

#include <algorithm>

#include "matching/rewrite.h"
#include "search/part.h"

namespace gopt::optimizer {

bool is_simpler(const Cost& cost, const Cost& than) {
  return cost.operations < than.operations && cost.bytes <= than.bytes && cost.kernels <= than.kernels;
}

std::optional<RewriteGain> price_binding(const Graph& graph, const Binding& binding, double uncertainty,
                                         const std::function<Cost(const Graph& part)>& estimate_part) {
  const Part part = part_around(graph, binding);
  const auto rewritten = apply_bindings(part.graph, {part.binding});
  if (!rewritten.ok() || rewritten->applied.empty()) return std::nullopt;
  const Cost before = estimate_part(part.graph), after = estimate_part(rewritten->graph);
  return RewriteGain{before.time_ms - after.time_ms, uncertainty * std::min(before.time_ms, after.time_ms),
                     is_simpler(after, before)};
}

}  // namespace gopt::optimizer
