// With how many threads a model runs where its caller names none: OpenMP's number, which follows OMP_NUM_THREADS,
// omp_set_num_threads() and the processors that the process may be scheduled on, but not the share of these that a
// container is given.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

namespace gopt_runtime {

// How many processors a quota of time is worth, rounded up: "max 100000" or "250000 100000" in a file of control groups
// version 2, two files in version 1. 0: as many as there are.
inline int processors_of_quota(const std::string& quota, double period) {
  const double time = std::strtod(quota.c_str(), nullptr);  // of "max" and "-1": none
  constexpr double kMost = 1 << 20;
  return time > 0 && period > 0 ? std::max(1, static_cast<int>(std::min(kMost, (time + period - 1) / period))) : 0;
}

// The least that a control group or one that it is in allows. `groups` has the text of /proc/self/cgroup, `root` is
// where they are mounted. Within a container the path may be one of outside: then the root's file is its own.
inline int processors_of_groups(const std::string& groups, const std::string& root) {
  std::ifstream lines(groups);
  int least = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t controllers = line.find(':') + 1, path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) continue;
    const std::string names = "," + line.substr(controllers, path - 1 - controllers) + ",";
    const bool is_second = names == ",,";
    if (!is_second && names.find(",cpu,") == std::string::npos) continue;
    const std::string top = root + (is_second ? "" : "/cpu");
    const std::string own = top + (line.substr(path) == "/" ? "" : line.substr(path));
    for (std::string at = own; at.size() >= top.size(); at.erase(at.find_last_of('/'))) {
      std::ifstream file(at + (is_second ? "/cpu.max" : "/cpu.cfs_quota_us")), other(at + "/cpu.cfs_period_us");
      std::string quota;
      double period = 0;
      if (!(file >> quota && (is_second ? file : other) >> period)) continue;
      const int allowed = processors_of_quota(quota, period);
      if (allowed > 0) least = least > 0 ? std::min(least, allowed) : allowed;
    }
  }
  return least;
}

inline int default_threads() {
  const int most = omp_get_max_threads();
  if (std::getenv("OMP_NUM_THREADS") || most != omp_get_num_procs()) return most;  // somebody has said so
  const int allowed = processors_of_groups("/proc/self/cgroup", "/sys/fs/cgroup");
  return allowed > 0 ? std::min(most, allowed) : most;
}

// Those that are asked for; of 0 and less as many as there are by default.
inline int thread_count(int threads) { return threads > 0 ? threads : default_threads(); }

}  // namespace gopt_runtime
