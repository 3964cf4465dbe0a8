// The check of a result by another reader: it runs the original file and the one that would be written.
#pragma once

#include "gopt/driver.h"

namespace gopt::driver {

// By `options.runner`. Never an error: what cannot be checked says so.
CheckReport check_files(const Graph& original, const Graph& optimized, const CheckOptions& options, uint64_t seed);

}  // namespace gopt::driver
