// Which of several rewritten models is kept, by their times in the runtime that they are for.
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "gopt/driver.h"
#include "gopt/model_timer.h"

namespace gopt::driver {

// Another way to rewrite the model; errors are those of searching. Nothing where it gives what cannot be written.
using Candidate = std::function<Result<std::optional<OptimizeResult>>()>;

struct JudgedModel {
  std::optional<OptimizeResult> kept;  // nothing: the original
  RuntimeTimes times;
};

struct JudgeOptions {
  bool is_content = false;  // where `found` is faster than the original, nothing else is timed
  double seconds_for_others = 120;
  const std::atomic<bool>* stop = nullptr;  // set: no time for others is left
};

// `found` against the original in turns, then each other candidate against the best so far, as long as there is time.
// Faster is what is faster by more than the noise; of `passes`, which no rule changed, it is enough that it is not
// slower. Errors: those of the timer, of candidates.
Result<JudgedModel> judge(const Graph& original, const OptimizeResult& passes, const OptimizeResult& found,
                          const std::vector<Candidate>& others, ModelTimer& timer, const JudgeOptions& options = {});

// How much faster than `before` `after` is, over the rounds of both.
struct Speedup {
  double median = 1;
  double noise = 0;  // how far the true median may be from it, 19 times of 20; at least a hundredth
  bool is_faster() const { return median > 1 + noise; }
  bool is_slower() const { return median < 1 - noise; }
};
Speedup speedup(const std::vector<double>& before, const std::vector<double>& after);

}  // namespace gopt::driver
