// Time that passes, for budgets and reports.
#pragma once

#include <chrono>

namespace gopt {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace gopt
