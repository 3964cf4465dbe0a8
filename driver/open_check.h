// The check of code for any size: at sizes that are drawn, against what computes the same graph at those alone.
#pragma once

#include "gopt/driver.h"
#include "planned_graph.h"

namespace gopt::driver {

// At a small size, by the interpreter, and at one near the usual, by code for that size alone where that takes too
// long. Its engine is that of the last. Precondition: graph.is_open().
CheckReport check_open_code(PlannedGraph& graph, const DriverOptions& options);

}  // namespace gopt::driver
