#include "judge.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "gopt/clock.h"
#include "gopt/statistics.h"

namespace gopt::driver {
namespace {

class Judge {
 public:
  Judge(const Graph& original, const OptimizeResult& passes, ModelTimer& timer, const JudgeOptions& options)
      : original_(original),
        passes_(passes),
        timer_(timer),
        options_(options),
        started_(std::chrono::steady_clock::now()) {}

  Result<JudgedModel> run(const OptimizeResult& found, const std::vector<Candidate>& others) {
    judged_.times.runtime = timer_.name();
    judged_.times.kept = "the original";
    seen_ = {original_.hash(), passes_.graph.hash()};
    if (options_.is_content) GOPT_RETURN_IF_ERROR(consider(found));
    const RuntimeTimes of_found = judged_.times;
    if (!judged_.kept) {
      GOPT_RETURN_IF_ERROR(consider_all(found, others));
      if (!judged_.kept && of_found.before_ms > 0) tell_times_of(of_found);
    }
    judged_.times.seconds = seconds();
    return std::move(judged_);
  }

 private:
  void tell_times_of(const RuntimeTimes& times) {
    judged_.times.before_ms = times.before_ms;
    judged_.times.after_ms = times.after_ms;
    judged_.times.speedup = times.speedup;
    judged_.times.noise = times.noise;
  }
  double seconds() const { return seconds_since(started_); }
  // As many others are considered as where all was timed anew: else each run would go on where the one before ended.
  bool has_time() const {
    const bool is_stopped = options_.stop && *options_.stop;
    return !is_stopped && seconds() + timer_.seconds_saved() <= options_.seconds_for_others;
  }
  const Graph& best() const { return judged_.kept ? judged_.kept->graph : original_; }

  Status consider_all(const OptimizeResult& found, const std::vector<Candidate>& others) {
    GOPT_RETURN_IF_ERROR(consider_passes());
    GOPT_RETURN_IF_ERROR(consider(found));
    for (const Candidate& other : others) {
      if (!has_time()) break;
      GOPT_ASSIGN_OR_RETURN(const std::optional<OptimizeResult> result, other());
      if (result) GOPT_RETURN_IF_ERROR(consider(*result));
    }
    return compare_with_original();
  }

  // The passes alone are kept unless they make it slower.
  Status consider_passes() {
    if (passes_.graph.hash() == original_.hash()) return Unit{};
    judged_.times.candidates++;
    GOPT_ASSIGN_OR_RETURN(const Speedup found, compare(original_, passes_.graph));
    if (!found.is_slower()) keep(passes_, "the passes without rules");
    return Unit{};
  }

  Status consider(const OptimizeResult& candidate) {
    if (!seen_.insert(candidate.graph.hash()).second) return Unit{};
    judged_.times.candidates++;
    GOPT_ASSIGN_OR_RETURN(const Speedup found, compare(best(), candidate.graph));
    if (found.is_faster()) keep(candidate, "a rewritten model");
    return Unit{};
  }

  void keep(const OptimizeResult& candidate, const std::string& what) {
    judged_.kept = candidate;
    judged_.times.kept = what;
  }

  // What was the best of several by some rounds is judged by rounds of its own.
  Status compare_with_original() {
    if (!judged_.kept) return Unit{};
    GOPT_ASSIGN_OR_RETURN(const Speedup found, compare(original_, judged_.kept->graph));
    if (judged_.times.kept == "a rewritten model" ? found.is_faster() : !found.is_slower()) return Unit{};
    judged_.kept.reset();
    judged_.times.kept = "the original";
    return Unit{};
  }

  Result<Speedup> compare(const Graph& before, const Graph& after) {
    GOPT_ASSIGN_OR_RETURN(const auto times, timer_.time({before, after}));
    const Speedup found = speedup(times[0], times[1]);
    if (before.hash() == original_.hash()) {
      judged_.times.before_ms = median(times[0]);
      judged_.times.after_ms = median(times[1]);
      judged_.times.speedup = found.median;
      judged_.times.noise = found.noise;
    }
    return found;
  }

  const Graph& original_;
  const OptimizeResult& passes_;
  ModelTimer& timer_;
  const JudgeOptions& options_;
  const std::chrono::steady_clock::time_point started_;
  std::set<Hash128> seen_;
  JudgedModel judged_;
};

}  // namespace

Speedup speedup(const std::vector<double>& before, const std::vector<double>& after) {
  constexpr double kLeastNoise = 0.01;
  std::vector<double> ratios;
  for (size_t round = 0; round < before.size(); round++) ratios.push_back(before[round] / after[round]);
  std::sort(ratios.begin(), ratios.end());
  // In 19 of 20 cases the true median lies between the ratios of these ranks, however they are distributed.
  const auto count = static_cast<double>(ratios.size());
  const auto rank = static_cast<size_t>(std::max(0.0, (count - 1.96 * std::sqrt(count)) / 2));
  const double middle = median(ratios);
  return {middle, std::max({kLeastNoise, middle - ratios[rank], ratios[ratios.size() - 1 - rank] - middle})};
}

Result<JudgedModel> judge(const Graph& original, const OptimizeResult& passes, const OptimizeResult& found,
                          const std::vector<Candidate>& others, ModelTimer& timer, const JudgeOptions& options) {
  return Judge(original, passes, timer, options).run(found, others);
}

}  // namespace gopt::driver
