// How fast this processor is, for estimates in milliseconds.
#pragma once

#include "gopt/kernel_costs.h"

namespace gopt::driver {

// The analytic costs' roofline with this processor's peak in place of the one that it was made for: measured in some
// milliseconds, once in a process. Arithmetic, memory and launches are scaled alike, so that what a search decides does
// not depend on what was measured.
const Roofline& machine_roofline();
// The same for runs of one model again and again: where all its weights stay in the processor's last cache, memory is
// faster by a fixed factor.
Roofline machine_roofline(const Graph& model);

}  // namespace gopt::driver
