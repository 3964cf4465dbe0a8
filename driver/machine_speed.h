// How fast this processor is, for estimates in milliseconds.
#pragma once

#include <string>

#include "gopt/kernel_costs.h"

namespace gopt::driver {

// The analytic costs' roofline with this processor's peak in place of the one that it was made for: measured in some
// milliseconds, once in a process, and kept (kept_gflops). Arithmetic, memory and launches are scaled alike.
const Roofline& machine_roofline();
// The same for runs of one model again and again: where all its weights stay in the processor's last cache, memory is
// faster by a fixed factor.
Roofline machine_roofline(const Graph& model);

// Of all constants, as the graph has them.
double weight_bytes(const Graph& graph);

// The best that the file at `path` ("SPEED PROCESSOR", a line each) knows of this processor and now, so that a machine
// that is busy at the moment makes no other estimates, nor another search, than before. What is measured replaces what
// is kept where it is more than a twentieth faster. A file that cannot be read or written is as none.
double kept_gflops(const std::string& path, const std::string& processor, double measured);

}  // namespace gopt::driver
