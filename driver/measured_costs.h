// Measured kernel times for the search: plans are emitted, built and profiled on this machine, and what each kernel
// took is kept in a cache file.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "gopt/kernel_costs.h"

namespace gopt::driver {

// The processor and the version of oneDNN, for the cache's keys.
std::string machine_name();

// Profiles the graph's plan under `costs` and puts times of kernels that the cache lacks; returns how many. Errors:
// those of planning and building, inputs that cannot be drawn.
Result<int> measure_kernels(const Graph& graph, const Target& target, KernelCosts& costs, KernelCache& cache,
                            uint64_t seed);

}  // namespace gopt::driver
