// The first kernel of a graph's code that does not compute what the interpreter does.
#pragma once

#include <optional>

#include "gopt/bisect.h"
#include "planned_graph.h"

namespace gopt::driver {

// What the kernels make is given out beside the graph's outputs, so that code and interpreter can be compared at each
// of them; it is stored anyway, so that kernels stay as they are but for layouts. Errors: a graph without code or with
// an operator that the interpreter does not know.
Result<std::optional<WrongKernel>> first_wrong_kernel(const Graph& graph, const Target& target, const CostSource& costs,
                                                      const std::map<std::string, Tensor>& inputs,
                                                      const Tolerance& tolerance);

}  // namespace gopt::driver
