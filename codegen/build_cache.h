// The folder in which built code is kept between runs does not grow without end.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>

namespace gopt::codegen {

struct BuildCacheLimits {
  uint64_t bytes = uint64_t{2} << 30;
  std::chrono::hours in_use{1};      // what is younger may be another run's, and stays
  std::chrono::hours abandoned{24};  // a folder of a build that was killed
};

// Says that this file of the cache is used now: it is among the last to be removed.
void mark_used(const std::filesystem::path& file);

// Removes objects and libraries (*.o, *.so), those first that were not used for the longest time, until the others take
// no more than `limits.bytes`; and folders in which a build was begun and never ended. Nothing else that lies there
// (times of kernels) is touched. What cannot be removed stays: that is no error.
void trim_build_cache(const std::filesystem::path& folder, const BuildCacheLimits& limits = {});

}  // namespace gopt::codegen
