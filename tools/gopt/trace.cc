#include "trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "search_flags.h"

namespace gopt::cli {
namespace {

constexpr size_t kMostNodes = 6;
constexpr size_t kMostRules = 25;

std::string places(const Improvement& found) {
  const size_t shown = std::min(found.nodes.size(), kMostNodes);
  std::string text =
      fmt::format("{}", fmt::join(found.nodes.begin(), found.nodes.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < found.nodes.size()) text += fmt::format(" and {} more", found.nodes.size() - shown);
  return text;
}

void print_improvement(const Improvement& found) {
  clear_progress_line();
  if (found.step == 0) {
    fmt::print("search           from {:.4g} ms\n", found.before_ms);
  } else {
    const std::string what = found.rule.empty()
                                 ? std::string("windows put together")
                                 : fmt::format("{}{} at {}", found.rule,
                                               found.times > 1 ? fmt::format(" x{}", found.times) : "", places(found));
    fmt::print("  step {:<5} {:7.2f} s  {:.4g} -> {:.4g} ms{}  {}\n", found.step, found.seconds, found.before_ms,
               found.after_ms, found.is_in_window ? " of a window" : "", what);
  }
  std::fflush(stdout);
}

}  // namespace

std::function<void(const Improvement&)> trace_improvements() { return print_improvement; }

std::function<void(const std::string&)> trace_progress() {
  if (isatty(2)) return progress_line();
  using Clock = std::chrono::steady_clock;
  return [last = Clock::now()](const std::string& line) mutable {
    if (Clock::now() - last < std::chrono::seconds(1)) return;
    last = Clock::now();
    fmt::print(stderr, "{}\n", line);
  };
}

void print_trials(const OptimizeResult& result) {
  std::vector<RuleTrials> rows = result.trials;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const RuleTrials& a, const RuleTrials& b) { return a.tried > b.tried; });
  RuleTrials total{"together"};
  for (const RuleTrials& row : rows) total += row;
  fmt::print("{:<52} {:>7} {:>9} {:>8} {:>6} {:>6} {:>8}\n", "rules tried", "tried", "improved", "kept", "dear",
             "known", "no fit");
  const auto print_row = [](const RuleTrials& row) {
    fmt::print("  {:<50} {:>7} {:>9} {:>8} {:>6} {:>6} {:>8}\n", row.rule, row.tried, row.improved, row.kept,
               row.too_dear, row.known, row.did_not_fit);
  };
  for (size_t k = 0; k < rows.size() && k < kMostRules; k++) print_row(rows[k]);
  if (rows.size() > kMostRules) fmt::print("  and {} more\n", rows.size() - kMostRules);
  print_row(total);
}

}  // namespace gopt::cli
