// How fast this processor is, for estimates in milliseconds.
#pragma once

#include "gopt/kernel_costs.h"

namespace gopt::driver {

// The analytic costs' roofline with this processor's peak in place of the one that it was made for: measured in some
// milliseconds, once in a process. Arithmetic, memory and launches are scaled alike, so that what a search decides does
// not depend on what was measured.
const Roofline& machine_roofline();

}  // namespace gopt::driver
