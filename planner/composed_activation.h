// Activations that a graph writes as several nodes: x times a function of x, as exporters write Gelu, Swish and
// HardSwish.
#pragma once

#include <optional>
#include <set>

#include "gopt/plan.h"

namespace gopt::planner {

struct ComposedActivation {
  Activation activation;
  std::set<const Node*> inner;  // what lies between `x` and the last node, constants apart
};

// Libraries take finite factors, and ranges that hold a finite number: no NaN, no ends in the wrong order.
bool is_of_libraries(const Activation& activation);

// What `last` makes of `x`, in whatever order its factors, sums and scales are written; none: no such activation.
// Constants may differ from the function's by what rounding to the type of x makes of them.
std::optional<ComposedActivation> composed_activation(const Value& x, const Node& last);

}  // namespace gopt::planner
