// Models that make more of a rounding than the tolerance: chaotic ones, and such as decide by comparing. Code and its
// reference round differently, so that on them no two right ways to compute agree.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gopt/driver.h"
#include "graph_runner.h"

namespace gopt::driver {

// Where `report` failed on these inputs: the reference is run again on inputs that are changed in their last digits
// (those that `precision` has). A difference of code from the reference that is no larger, and in no more elements,
// than a few times what that changes cannot be told from rounding: it passes, and report.amplified says so. What is not
// comparable (NaN in other places) never does. `expected` are the reference's outputs on `inputs`, `found` the code's.
// Errors: those of running the reference.
Status allow_for_amplification(CheckReport& report, const GraphRunner& reference,
                               const std::map<std::string, Tensor>& inputs, const std::vector<Tensor>& expected,
                               const std::vector<Tensor>& found, const Tolerance& tolerance, Precision precision,
                               uint64_t seed);

}  // namespace gopt::driver
