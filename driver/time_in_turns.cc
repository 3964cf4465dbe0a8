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
    const bool is_enough = seconds_since(start) > limits.enough_seconds || (limits.stop && *limits.stop);
    if (round + 1 >= limits.least_rounds && is_enough) break;
  }
  return times;
}

PairedTimes paired(const std::vector<double>& first, const std::vector<double>& second) {
  std::vector<double> ratios;
  for (size_t round = 0; round < first.size(); round++) ratios.push_back(first[round] / second[round]);
  return {median(first), median(second), median(ratios), quantile(ratios, 0.25), quantile(ratios, 0.75)};
}

Result<PairedTimes> time_in_turns(RunnableModel& first, RunnableModel& second, uint64_t seed,
                                  const TurnLimits& limits) {
  GOPT_ASSIGN_OR_RETURN(const auto inputs, first.draw(seed));
  const auto turn_of = [&inputs](RunnableModel& model) {
    return [&model, &inputs, is_warm = false]() mutable -> Result<double> {
      GOPT_ASSIGN_OR_RETURN(const auto times, model.time(inputs, is_warm ? 0 : 2, 1));
      is_warm = true;
      return times[0];
    };
  };
  GOPT_ASSIGN_OR_RETURN(const auto times, take_turns({turn_of(first), turn_of(second)}, limits));
  return paired(times[0], times[1]);
}

}  // namespace gopt::driver
