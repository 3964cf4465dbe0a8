// What makes an optimized model differ from its original, in value or in time: what `gopt bisect` says, as values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gopt/driver.h"

namespace gopt {

// A kernel whose result is not what the interpreter makes of the same graph.
struct WrongKernel {
  std::string kernel;     // as print_plan has it
  Difference difference;  // of the value that it stores
  int right_before = 0;   // kernels before it whose results agree
};

struct ValueBisection {
  std::vector<std::string> applied;  // rules of the result, and passes that changed something
  CheckReport check;                 // the result against the original
  // The fewest of `applied` that make a difference by themselves, and theirs. Empty although the check failed: all
  // of them together, searched for again, make none.
  std::vector<std::string> guilty;
  CheckReport guilty_check;
  int searches = 0;
  bool is_smallest = true;  // else the searches were used up
  std::optional<WrongKernel> kernel;
  std::string kernel_note;         // where kernels were not looked at: why
  std::vector<std::string> notes;  // of the optimization

  bool differs() const { return (check.checked && !check.passed) || kernel; }
};

// Optimizes the graph by the options and compares the result with the original, on the inputs of the check; where they
// differ, finds the rules and passes that make it so. Then the result's code with the interpreter, kernel by kernel.
// Errors: those of optimize_graph, what cannot be checked.
Result<ValueBisection> bisect_value(const Graph& graph, const std::vector<RewriteRule>& rules,
                                    const DriverOptions& options, int most_searches = 64);

// The whole result's time is the unit.
struct TimeWithout {
  std::string name;               // a rule or a pass
  int times = 0;                  // that the result applied it
  bool has_same_kernels = false;  // then it was not timed
  double ms = 0;                  // median of the code without it
  double ratio = 1;               // without over with: median over rounds
  double low = 1, high = 1;       // quartiles of that
  std::string note;               // where it was not timed: why
};

struct KernelTime {
  std::string kernel;  // its name
  double ms = 0, estimated_ms = 0;
};

struct TimeBisection {
  double before_ms = 0, after_ms = 0;
  double speedup = 1, low = 1, high = 1;  // of the result over the original: median and quartiles over rounds
  std::vector<TimeWithout> without;       // slowest first
  std::vector<KernelTime> kernels;        // of the result, slowest first
  std::vector<std::string> notes;
};

// Each rule and pass of the result left out in turn: the graph is searched again without it, and the code of what is
// found timed in turns with the whole result's, `options.runs` rounds each. Errors: those of optimize_graph, a result
// that has no code here.
Result<TimeBisection> bisect_time(const Graph& graph, const std::vector<RewriteRule>& rules,
                                  const DriverOptions& options);

}  // namespace gopt
