// What is particular to a result that is an ONNX file: by which cost it is searched, when a rule pays there, and the
// runtime's own times.
#pragma once

#include "gopt/cost.h"
#include "gopt/driver.h"
#include "planned_graph.h"

namespace gopt::driver {

// For TargetKind::Onnx the cost of a runtime, else that of the cheapest plan.
std::unique_ptr<CostOracle> make_oracle(const Target& target, const CostSource& costs, double unknown_factor);

// Whether a graph that took a rule to reach is worth it beside the one without. Of ONNX nodes there are no more than
// there were unless these are paid for by a clear gain.
bool pays(const Target& target, const Cost& with, const Cost& without);

}  // namespace gopt::driver
