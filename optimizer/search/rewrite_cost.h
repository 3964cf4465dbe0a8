// What a rewrite changes of a graph's cost, by what it changes of the nodes around it.
#pragma once

#include <functional>
#include <optional>

#include "gopt/cost.h"
#include "matching/match.h"

namespace gopt::optimizer {

struct RewriteGain {
  double gain_ms;
  double uncertain_ms;      // a gain of no more may be none
  bool is_simpler = false;  // less work by less or as many kernels: of two graphs that take one time, the better one

  bool is_gain() const { return gain_ms > uncertain_ms || (is_simpler && gain_ms >= -uncertain_ms); }
};
bool is_simpler(const Cost& cost, const Cost& than);

// `uncertainty` is the oracle's, as a share. Nothing where the binding cannot be applied.
std::optional<RewriteGain> price_binding(const Graph& graph, const Binding& binding, double uncertainty,
                                         const std::function<Cost(const Graph& part)>& estimate_part);

}  // namespace gopt::optimizer
