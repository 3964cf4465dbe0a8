#include "measured_costs.h"

#include <dlfcn.h>

#include <algorithm>
#include <fstream>

#include "gopt/driver.h"
#include "gopt/runnable_model.h"

namespace gopt::driver {
namespace {

// oneDNN says its version through its C interface, the same in releases 2 and 3.
std::string dnnl_version_text() {
  struct Version {
    int major, minor, patch;
  };
  for (const char* name : {"libdnnl.so", "libdnnl.so.3", "libdnnl.so.2"}) {
    void* library = dlopen(name, RTLD_LAZY);
    if (!library) continue;
    const auto version = reinterpret_cast<const Version* (*)()>(dlsym(library, "dnnl_version"));
    if (version)
      return std::to_string(version()->major) + "." + std::to_string(version()->minor) + "." +
             std::to_string(version()->patch);
  }
  return "none";
}

}  // namespace

std::string machine_name() {
  std::string processor = "unknown";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    processor = line.substr(line.find(':') + 1);
    break;
  }
  return processor + "; oneDNN " + dnnl_version_text() + "; " GOPT_VERSION;
}

Result<int> measure_kernels(const Graph& graph, const Target& target, KernelCosts& costs, KernelCache& cache,
                            uint64_t seed) {
  GOPT_ASSIGN_OR_RETURN(Plan plan, make_plan(graph, target, costs));
  std::vector<std::string> signatures;
  for (const Kernel& kernel : plan.kernels) signatures.push_back(kernel_signature(plan, kernel));
  if (std::all_of(signatures.begin(), signatures.end(),
                  [&](const std::string& s) { return cache.find(s).has_value(); }))
    return 0;
  GOPT_ASSIGN_OR_RETURN(std::unique_ptr<RunnableModel> model, compile_plan(plan, target.threads));
  GOPT_ASSIGN_OR_RETURN(auto inputs, draw_inputs(graph, seed));
  // Least of several short profiles: what disturbs a shared machine only ever adds.
  constexpr int kRounds = 5, kRuns = 3;
  std::vector<double> best(plan.kernels.size(), 1e30);
  for (int round = 0; round < kRounds; round++) {
    GOPT_ASSIGN_OR_RETURN(auto times, model->profile(inputs, kRuns));
    if (times.size() != plan.kernels.size()) return Error{"the profile does not have a row a kernel"};
    for (size_t k = 0; k < times.size(); k++) best[k] = std::min(best[k], times[k].second / kRuns);
  }
  int added = 0;
  for (size_t k = 0; k < best.size(); k++) {
    if (cache.find(signatures[k])) continue;
    cache.put(signatures[k], best[k]);
    added++;
  }
  return added;
}

}  // namespace gopt::driver
