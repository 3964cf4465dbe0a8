// What one optimization did, as the table that is printed and as the JSON of --report.
#pragma once

#include <string>

#include "gopt/driver.h"

namespace gopt::cli {

struct OptimizationReport {
  std::string model, output, emitted;
  const Graph& before;
  size_t rules = 0;  // that were offered
  const DriverOptions& options;
  const Outcome& outcome;
  double seconds = 0;
};

void print_report(const OptimizationReport& report);
std::string report_json(const OptimizationReport& report);

}  // namespace gopt::cli
