#include "measured_costs.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>

#include "build_plan.h"
#include "code_hash.h"

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
  return processor + "; oneDNN " + dnnl_version_text() + "; code " GOPT_CODE_HASH;
}

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Kernels of one build. Each is run a few times in turn with the others; what counts is the lower quartile: what disturbs a
// shared machine only ever adds.
class Batch {
 public:
  explicit Batch(std::vector<KernelSpec> specs)
      : specs_(std::move(specs)), samples_ms_(specs_.size()), is_refused_(specs_.size()) {}

  // Until `is_over` says so. Errors: those of building.
  Status time(int threads, const std::function<bool()>& is_over) {
    GOPT_ASSIGN_OR_RETURN(LoadedModel model, build_plan(timing_plan(specs_), threads));
    for (int round = 0; round < kRounds; round++)
      for (size_t k = 0; k < specs_.size() && !is_over(); k++) time_once(model, k);
    return Unit{};
  }

  int keep(KernelCache& cache) const {
    int kept = 0;
    for (size_t k = 0; k < specs_.size(); k++) {
      if (samples_ms_[k].empty() && !is_refused_[k]) continue;
      cache.put(kernel_signature(specs_[k]), is_refused_[k] ? std::numeric_limits<double>::infinity() : typical_ms(k));
      kept++;
    }
    return kept;
  }

 private:
  static constexpr int kRounds = 11;
  static constexpr double kSlowMs = 150;  // in all, after which a kernel is timed no more

  void time_once(LoadedModel& model, size_t k) {
    std::vector<double>& samples = samples_ms_[k];
    if (is_refused_[k] || std::accumulate(samples.begin(), samples.end(), 0.0) > kSlowMs) return;
    const Result<double> ms = model.time_kernel(k);
    if (ms.ok())
      samples.push_back(*ms);
    else
      is_refused_[k] = true;  // the library has no such kernel
  }

  // The first run finds nothing in place: it counts where there is no other.
  double typical_ms(size_t k) const {
    std::vector<double> samples = samples_ms_[k];
    if (samples.size() > 1) samples.erase(samples.begin());
    const auto quarter = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 4);
    std::nth_element(samples.begin(), quarter, samples.end());
    return *quarter;
  }

  std::vector<KernelSpec> specs_;
  std::vector<std::vector<double>> samples_ms_;
  std::vector<bool> is_refused_;
};

}  // namespace

Result<int> measure_kernels(const std::vector<KernelSpec>& specs, KernelCache& cache, const MeasureOptions& options) {
  std::vector<KernelSpec> missing;
  for (const KernelSpec& spec : specs)
    if (!cache.find(kernel_signature(spec))) missing.push_back(spec);
  const auto start = Clock::now();
  auto is_over = [&] {
    return (options.stop && options.stop->load()) || seconds_since(start) >= options.budget_seconds;
  };
  constexpr size_t kBatch = 96;
  int timed = 0;
  for (size_t first = 0; first < missing.size() && !is_over(); first += kBatch) {
    if (options.progress)
      options.progress("timing kernels: " + std::to_string(first) + " of " + std::to_string(missing.size()));
    const size_t end = std::min(missing.size(), first + kBatch);
    Batch batch({missing.begin() + static_cast<std::ptrdiff_t>(first), missing.begin() + static_cast<std::ptrdiff_t>(end)});
    GOPT_RETURN_IF_ERROR(batch.time(options.threads, is_over));
    timed += batch.keep(cache);
    GOPT_RETURN_IF_ERROR(cache.save());
  }
  return timed;
}

}  // namespace gopt::driver
