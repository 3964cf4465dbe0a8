// The check of a result: the optimized graph against the original on fresh random inputs, ordinary ones and such as
// show what floats make of a rewrite (check_inputs.h).
#pragma once

#include "gopt/driver.h"
#include "planned_graph.h"

namespace gopt::driver {

// `operations`: of the original, which decide what CheckEngine::Auto takes. Never an error: what cannot be checked says
// so.
CheckReport check_equal(PlannedGraph& original, PlannedGraph& optimized, const CheckOptions& options, double operations,
                        uint64_t seed);

}  // namespace gopt::driver
