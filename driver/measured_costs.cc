#include "measured_costs.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <map>
#include <numeric>

#include "device_turn.h"
#include "gopt/clock.h"
#include "gopt/codegen.h"
#include "gopt/kernel_costs.h"
#include "gopt/statistics.h"
#include "gopt/temporary.h"

namespace gopt::driver {
namespace {

// Their clock is not disturbed by what others do, and a build takes as long for many as for a few.
bool is_of_gpu(const std::vector<KernelSpec>& specs) {
  return !specs.empty() && specs[0].target.kind == TargetKind::Cuda;
}

// The same for kernels that compute the same from the same, whatever the implementation.
std::string rivals_of(KernelSpec spec) {
  spec.kernel.implementation.clear();
  return kernel_signature(spec);
}

// Milliseconds of the fastest so far of kernels that compute the same.
using LeastOfRivals = std::map<std::string, double>;
void note_least(LeastOfRivals& least, const std::string& rivals, double ms) {
  const auto [own, is_first] = least.try_emplace(rivals, ms);
  if (!is_first) own->second = std::min(own->second, ms);
}

// Kernels of one build. Each is run a few times in turn with the others; what counts is the least time: what disturbs a
// shared machine only ever adds. What is far behind another that computes the same is not run again.
class Batch {
 public:
  // `least` is of all batches.
  Batch(std::vector<KernelSpec> specs, LeastOfRivals& least, bool weights_from_memory)
      : specs_(std::move(specs)),
        weights_from_memory_(weights_from_memory),
        least_(&least),
        samples_ms_(specs_.size()),
        is_refused_(specs_.size()) {
    for (const KernelSpec& spec : specs_) rivals_.push_back(rivals_of(spec));
  }

  // Begins to build them, where `is_beside` while others are timed. Errors: those of emission, no folder.
  Status build(bool is_beside) {
    GOPT_ASSIGN_OR_RETURN(const EmittedCode code, emit(timing_plan(specs_)));
    GOPT_ASSIGN_OR_RETURN(TemporaryFolder made, TemporaryFolder::create());
    folder_ = std::make_unique<TemporaryFolder>(std::move(made));
    GOPT_RETURN_IF_ERROR(write_emitted(code, inside(), false));
    built_ =
        std::async(is_beside ? std::launch::async : std::launch::deferred, [folder = inside()]() -> Result<double> {
          const auto start = Clock::now();
          GOPT_RETURN_IF_ERROR(LoadedModel::build(folder));
          return seconds_since(start);
        });
    return Unit{};
  }

  // When it is built, until `is_over` says so. Errors: those of building; a device that fails, after which what was
  // timed is good.
  Status time(int threads, const std::function<bool()>& is_over, double& waited_seconds) {
    GOPT_ASSIGN_OR_RETURN(LoadedModel model, LoadedModel::build_and_load(inside(), threads));
    std::optional<DeviceTurn> turn;
    if (is_of_gpu(specs_)) waited_seconds += turn.emplace().waited_seconds();
    const int rounds = is_of_gpu(specs_) ? kGpuRounds : kRounds;
    for (int round = 0; round < rounds; round++)
      for (size_t k = 0; k < specs_.size() && !is_over(); k++) GOPT_RETURN_IF_ERROR(time_once(model, k));
    return Unit{};
  }

  // Seconds that it took.
  Result<double> wait_until_built() { return built_.get(); }

  // Puts the times into the cache, in the units of those that it has: a shared machine is slower on one day than on
  // another, and kernels that the cache knows, timed along, say by how much. Returns how many are new.
  int keep(KernelCache& cache) const {
    const double scale = scale_to(cache);
    int kept = 0;
    for (size_t k = 0; k < specs_.size(); k++) {
      const std::string signature = kernel_signature(specs_[k]);
      if ((samples_ms_[k].empty() && !is_refused_[k]) || cache.find(signature)) continue;
      cache.put(signature, is_refused_[k] ? std::numeric_limits<double>::infinity() : scale * least_ms(k));
      kept++;
    }
    return kept;
  }

 private:
  static constexpr int kRounds = 15, kGpuRounds = 8;
  // In all, after which a kernel is timed no more: where it was timed a few times, since one time may be a disturbed
  // one, and in any case.
  static constexpr double kSlowMs = 150, kVerySlowMs = 4000, kFarBehind = 1.5;
  static constexpr size_t kFewSamples = 4;

  bool is_timed_enough(size_t k) const {
    const double spent = std::accumulate(samples_ms_[k].begin(), samples_ms_[k].end(), 0.0);
    if (spent > kVerySlowMs) return true;
    if (samples_ms_[k].size() < kFewSamples) return false;
    return spent > kSlowMs || least_ms(k) > kFarBehind * least_->at(rivals_[k]);
  }

  Status time_once(LoadedModel& model, size_t k) {
    std::vector<double>& samples = samples_ms_[k];
    if (is_refused_[k] || is_timed_enough(k)) return Unit{};
    GOPT_ASSIGN_OR_RETURN(const std::optional<double> ms, model.time_kernel(k, weights_from_memory_));
    is_refused_[k] = !ms;
    if (!ms) return Unit{};
    samples.push_back(*ms);
    note_least(*least_, rivals_[k], least_ms(k));
    return Unit{};
  }

  // The first run finds nothing in place: it counts where there is no other.
  double least_ms(size_t k) const {
    const std::vector<double>& samples = samples_ms_[k];
    return *std::min_element(samples.begin() + (samples.size() > 1 ? 1 : 0), samples.end());
  }

  double scale_to(const KernelCache& cache) const {
    std::vector<double> ratios;
    for (size_t k = 0; k < specs_.size(); k++) {
      const auto known = cache.find(kernel_signature(specs_[k]));
      if (known && !samples_ms_[k].empty()) ratios.push_back(*known / least_ms(k));
    }
    constexpr size_t kFewest = 3;  // of which a median says something
    return ratios.size() < kFewest ? 1 : median(ratios);
  }

  std::string inside() const { return folder_->path() / "model"; }

  std::vector<KernelSpec> specs_;
  bool weights_from_memory_;
  LeastOfRivals* least_;
  std::vector<std::string> rivals_;
  std::vector<std::vector<double>> samples_ms_;
  std::vector<bool> is_refused_;
  std::unique_ptr<TemporaryFolder> folder_;
  std::future<Result<double>> built_;  // which writes to no folder but the build cache's
};

}  // namespace

namespace {

// Of those that compute the same the one that is estimated to be the fastest first, then of each the second: where time
// ends, every kernel has a time of what it is most likely to be.
std::vector<KernelSpec> most_promising_first(std::vector<KernelSpec> specs) {
  std::vector<std::string> rivals;
  const auto costs = analytic_kernel_costs({});
  std::vector<double> estimated_ms;
  for (const KernelSpec& spec : specs) {
    Plan alone;
    alone.target = spec.target;
    alone.buffers = spec.buffers;
    estimated_ms.push_back(costs->time_ms(alone, spec.kernel));
    rivals.push_back(rivals_of(spec));
  }
  std::vector<size_t> order(specs.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t k) { return estimated_ms[k]; });
  std::map<std::string, size_t> before;  // rivals so far
  std::vector<size_t> ranks(specs.size());
  for (const size_t k : order) ranks[k] = before[rivals[k]]++;
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t k) { return ranks[k]; });
  std::vector<KernelSpec> sorted;
  for (const size_t k : order) sorted.push_back(std::move(specs[k]));
  return sorted;
}

// Some of those that the cache knows, neither so short that the clock decides nor so long that they keep others
// waiting.
std::vector<KernelSpec> references_among(const std::vector<KernelSpec>& specs, const KernelCache& cache) {
  constexpr double kShortMs = 0.01, kLongMs = 3;
  constexpr size_t kWanted = 9;
  std::vector<KernelSpec> known;
  for (const KernelSpec& spec : specs) {
    const auto ms = cache.find(kernel_signature(spec));
    if (ms && *ms >= kShortMs && *ms <= kLongMs) known.push_back(spec);
  }
  std::vector<KernelSpec> chosen;
  const size_t step = std::max<size_t>(1, known.size() / kWanted);
  for (size_t k = 0; k < known.size() && chosen.size() < kWanted; k += step) chosen.push_back(known[k]);
  return chosen;
}

}  // namespace

Result<int> measure_kernels(const std::vector<KernelSpec>& specs, KernelCache& cache, const MeasureOptions& options) {
  std::vector<KernelSpec> missing;
  LeastOfRivals least;
  for (const KernelSpec& spec : specs) {
    const auto known = cache.find(kernel_signature(spec));
    if (known)
      note_least(least, rivals_of(spec), *known);
    else
      missing.push_back(spec);
  }
  missing = most_promising_first(std::move(missing));
  const auto start = Clock::now();
  double waited = 0;
  auto is_over = [&] {
    return (options.stop && options.stop->load()) || seconds_since(start) - waited >= options.budget_seconds;
  };
  // What is timed on a GPU is not disturbed by compilers: the next batch is built meanwhile.
  constexpr size_t kBatch = 96, kGpuBatch = 384;
  const bool is_beside = is_of_gpu(missing);
  const size_t batch_size = is_beside ? kGpuBatch : kBatch;
  size_t begun = 0;
  double build_seconds = 0;  // of the last one: nothing is built that there will be no time for
  const auto begin_next = [&]() -> Result<std::optional<Batch>> {
    const bool ends_soon = seconds_since(start) - waited + build_seconds >= options.budget_seconds;
    if (begun >= missing.size() || is_over() || (is_beside && ends_soon)) return std::optional<Batch>();
    std::vector<KernelSpec> in_batch = references_among(specs, cache);
    const size_t end = std::min(missing.size(), begun + batch_size);
    in_batch.insert(in_batch.end(), missing.begin() + static_cast<std::ptrdiff_t>(begun),
                    missing.begin() + static_cast<std::ptrdiff_t>(end));
    std::optional<Batch> batch(std::in_place, std::move(in_batch), least, options.weights_from_memory);
    GOPT_RETURN_IF_ERROR(batch->build(is_beside));
    begun = end;
    return batch;
  };
  int timed = 0;
  size_t done = 0;
  GOPT_ASSIGN_OR_RETURN(std::optional<Batch> batch, begin_next());
  while (batch) {
    if (options.progress)
      options.progress("timing kernels: " + std::to_string(done) + " of " + std::to_string(missing.size()));
    done = begun;
    GOPT_ASSIGN_OR_RETURN(build_seconds, batch->wait_until_built());
    std::optional<Batch> next;
    if (is_beside) {
      GOPT_ASSIGN_OR_RETURN(next, begin_next());
    }
    const double before = waited;
    const Status status = batch->time(options.threads, is_over, waited);
    if (options.waited_seconds) *options.waited_seconds += waited - before;
    timed += batch->keep(cache);
    GOPT_RETURN_IF_ERROR(cache.save());
    GOPT_RETURN_IF_ERROR(status);
    if (!is_beside) {
      GOPT_ASSIGN_OR_RETURN(next, begin_next());
    }
    batch = std::move(next);
  }
  return timed;
}

}  // namespace gopt::driver
