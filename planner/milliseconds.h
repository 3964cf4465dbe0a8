// Times that are added up in any order.
#pragma once

#include <cmath>

namespace gopt::planner {

// The nearest multiple of 2^-24 ms (0.06 ns). Sums of such times are exact, whatever their order (below 2^29 ms), so
// that graphs of the same kernels cost the same, on a fast processor as on a slow one, and a search decides alike on
// both.
inline double in_steps(double ms) { return std::ldexp(std::nearbyint(std::ldexp(ms, 24)), -24); }

}  // namespace gopt::planner
