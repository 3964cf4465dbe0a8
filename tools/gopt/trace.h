// gopt optimize --trace: the steps of a search that improved, as they are found, and what was tried and dropped.
#pragma once

#include <functional>
#include <string>

#include "gopt/driver.h"

namespace gopt::cli {

// Prints a line for each.
std::function<void(const Improvement&)> trace_improvements();

// Where standard error is no terminal: a line of progress, at most one a second.
std::function<void(const std::string&)> trace_progress();

// A row for each rule that the search of the result tried, the most tried first.
void print_trials(const OptimizeResult& result);

}  // namespace gopt::cli
