#include "gopt/statistics.h"

#include <algorithm>
#include <numeric>

namespace gopt {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

Statistics statistics(std::vector<double> times_ms) {
  std::sort(times_ms.begin(), times_ms.end());
  Statistics s;
  s.min = times_ms.front();
  s.max = times_ms.back();
  s.mean = std::accumulate(times_ms.begin(), times_ms.end(), 0.0) / static_cast<double>(times_ms.size());
  s.median = median(times_ms);
  s.p99 = times_ms[std::min(times_ms.size() - 1, times_ms.size() * 99 / 100)];
  return s;
}

}  // namespace gopt
