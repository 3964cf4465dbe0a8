// The mutants of one optimization: of the model as the rules at hand leave it, by its plan.
#pragma once

#include "gopt/driver.h"

namespace gopt::driver {

// For as many seconds as the options say; a quarter of these goes to a search by the rules at hand, so that mutants are
// of what these leave. Errors: a graph that cannot be planned; those of optimize().
Result<FoundMutants> mutants_of(const Graph& graph, const std::vector<RewriteRule>& rules,
                                const DriverOptions& options);

}  // namespace gopt::driver
