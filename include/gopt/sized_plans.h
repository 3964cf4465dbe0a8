// Plans of one model for several sizes of its open extents, brought together behind one interface (SizedPlans), and the
// check that what is behind it is each size's own code.
#pragma once

#include <vector>

#include "gopt/codegen.h"
#include "gopt/driver.h"

namespace gopt {

// `open`: the model with its open extents; the plans: of the same model at sizes of them. Errors: an extent that no
// input has by itself, so that inputs would not say it; two plans for one size.
Result<SizedPlans> join_sizes(const Graph& open, const std::vector<Plan>& plans);

// Runs the code for all sizes at each, against that size's own code, on fresh random inputs; and where rows may be run
// in parts, each size's first rows by the smaller ones. Errors: the first output that differs, with its size; those of
// building.
Status check_sizes(const SizedPlans& plans, const DriverOptions& options);

}  // namespace gopt
