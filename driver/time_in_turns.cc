#include "time_in_turns.h"

#include "gopt/clock.h"
#include "gopt/statistics.h"

namespace gopt::driver {

Result<std::vector<std::vector<double>>> take_turns(const std::vector<Turn>& turns, const TurnLimits& limits) {
  std::vector<std::vector<double>> times(turns.size());
  const auto start = Clock::now();
  for (int round = 0; round < limits.most_rounds; round++) {
    for (size_t k = 0; k < turns.size(); k++) {
      const size_t own = round % 2 == 0 ? k : turns.size() - 1 - k;
      GOPT_ASSIGN_OR_RETURN(const double ms, turns[own]());
      times[own].push_back(ms);
    }
    const double seconds = seconds_since(start);
    if (round + 1 >= limits.least_rounds && seconds > limits.enough_seconds) break;
  }
  return times;
}

Result<PairedTimes> time_in_turns(RunnableModel& first, RunnableModel& second, uint64_t seed, int runs) {
  GOPT_ASSIGN_OR_RETURN(const auto inputs, first.draw(seed));
  std::vector<double> of_first, of_second, ratios;
  for (int k = 0; k < runs; k++) {
    const int warmup = k == 0 ? 2 : 0;
    GOPT_ASSIGN_OR_RETURN(const auto one, first.time(inputs, warmup, 1));
    GOPT_ASSIGN_OR_RETURN(const auto other, second.time(inputs, warmup, 1));
    of_first.push_back(one[0]);
    of_second.push_back(other[0]);
    ratios.push_back(one[0] / other[0]);
  }
  return PairedTimes{median(of_first), median(of_second), median(ratios), quantile(ratios, 0.25),
                     quantile(ratios, 0.75)};
}

}  // namespace gopt::driver
