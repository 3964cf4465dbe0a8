// Summaries of measured times, as trtexec prints them.
#pragma once

#include <string>
#include <vector>

namespace gopt {

struct Statistics {
  double min = 0, max = 0, mean = 0, median = 0, p99 = 0;  // milliseconds
};
Statistics statistics(std::vector<double> times_ms);        // precondition: not empty
double median(std::vector<double> values);                  // precondition: not empty
double quantile(std::vector<double> values, double share);  // 0.25: the lower quartile, also between two values

}  // namespace gopt
