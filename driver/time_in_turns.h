// Two models timed in turns on this machine, so that what disturbs one disturbs the other.
#pragma once

#include <atomic>
#include <functional>

#include "gopt/runnable_model.h"

namespace gopt::driver {

// A turn of one of several models: its milliseconds.
using Turn = std::function<Result<double>()>;

struct TurnLimits {
  int most_rounds = 21;  // of a turn of each; medians over so many tell a hundredth apart
  int least_rounds = 5;  // after which `enough_seconds` ends it
  double enough_seconds = 20;
  const std::atomic<bool>* stop = nullptr;  // set: as `enough_seconds`
};

// For each model, one number a round; every other round goes backwards, so that none always follows the same. Errors:
// the first of a turn.
Result<std::vector<std::vector<double>>> take_turns(const std::vector<Turn>& turns, const TurnLimits& limits = {});

struct PairedTimes {
  double first_ms = 0, second_ms = 0;  // medians
  double ratio = 0;                    // first over second: median over rounds
  double low = 0, high = 0;            // quartiles of that
};

PairedTimes paired(const std::vector<double>& first, const std::vector<double>& second);  // of each round a number
// A run of each a round on the same inputs, after two that do not count. Errors: those of drawing inputs and running.
Result<PairedTimes> time_in_turns(RunnableModel& first, RunnableModel& second, uint64_t seed, const TurnLimits& limits);

// Of two that repeat within this factor neither is faster.
constexpr double kTimingNoise = 1.01;

}  // namespace gopt::driver
