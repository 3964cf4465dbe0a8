// Measured kernel times: kernels are emitted, built and timed on this machine, each by itself, and what each took is
// kept in a cache file.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "gopt/kernel_costs.h"
#include "gopt/kernel_spec.h"

namespace gopt::driver {

struct MeasureOptions {
  int threads = 1;
  double budget_seconds = 60;        // what is not timed by then is estimated
  bool weights_from_memory = false;  // those of the model are more than what stays in the last cache
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string&)> progress;  // a line each
  double* waited_seconds = nullptr;  // what other processes had the GPU for is added to it, and is not of the budget
};

// Times kernels that the cache lacks, saves it after each batch of them, and returns how many were timed. Errors: those
// of building, a cache that cannot be written.
Result<int> measure_kernels(const std::vector<KernelSpec>& specs, KernelCache& cache, const MeasureOptions& options);

}  // namespace gopt::driver
