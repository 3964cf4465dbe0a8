// What a run needs of this machine's memory at least.
#pragma once

#include <string>

#include "gopt/graph.h"
#include "gopt/result.h"

namespace gopt::driver {

// Bytes that a process of this machine may have: what is built in, or what the process is limited to.
double bytes_of_machine();
// Of a tensor of static shape whose elements take so many bytes each: also more than there are numbers for.
double bytes_of_tensor(const TensorType& type, size_t of_element);
// "34.4 GB"
std::string gigabytes(double bytes);

// Whether a graph's inputs and outputs, without which it cannot be run, lie in memory together. Errors: how much they
// take, and which takes most. What has open extents fits.
Status must_fit_memory(const Graph& graph);

}  // namespace gopt::driver
