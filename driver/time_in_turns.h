// Two models timed in turns on this machine, so that what disturbs one disturbs the other.
#pragma once

#include "gopt/runnable_model.h"

namespace gopt::driver {

struct PairedTimes {
  double first_ms = 0, second_ms = 0;  // medians
  double ratio = 0;                    // first over second: median over rounds
  double low = 0, high = 0;            // quartiles of that
};

// `runs` rounds of a run of each on the same inputs, after two that do not count. Errors: those of drawing inputs and
// running.
Result<PairedTimes> time_in_turns(RunnableModel& first, RunnableModel& second, uint64_t seed, int runs);

// Of two that repeat within this factor neither is faster.
constexpr double kTimingNoise = 1.01;

}  // namespace gopt::driver
