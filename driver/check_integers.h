// Extreme integers beside other inputs of a check (check_inputs.h).
#pragma once

#include <functional>
#include <map>
#include <string>

#include "graph_runner.h"

namespace gopt::driver {

using RunModel = std::function<Result<std::vector<Tensor>>(const std::map<std::string, Tensor>&)>;

// Both on such inputs, where the report has passed so far, the reference is the interpreter, and it gives them a
// meaning: a place that is computed of them may lie outside. `ordinary`: what other inputs are. Errors: those of
// `other`.
Status check_integers(CheckReport& report, const GraphRunner& reference, const RunModel& other,
                      const std::map<std::string, Tensor>& ordinary, const CheckOptions& options,
                      const Tolerance& tolerance, uint64_t seed);

}  // namespace gopt::driver
