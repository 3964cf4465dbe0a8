// What `gopt optimize` does to a graph, as one function: rules are confirmed and searched, the result is checked and,
// where code is wanted, planned and timed. It prints nothing, handles no signal, and reads and writes no model but for
// a timer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gopt/compare.h"
#include "gopt/file_runner.h"
#include "gopt/kernel_costs.h"
#include "gopt/model_timer.h"
#include "gopt/mutants.h"
#include "gopt/optimizer.h"
#include "gopt/phases.h"
#include "gopt/plan.h"

namespace gopt {

// Auto: by the model's operations. Files: `runner` runs the original file and the written one.
enum class CheckEngine { Auto, Interpreter, Cpu, Files, Off };

struct CheckOptions {
  CheckEngine engine = CheckEngine::Auto;
  Tolerance tolerance;
  std::string original_file;           // for Files
  std::shared_ptr<FileRunner> runner;  // for Files
  // By name: inputs that are tried beside drawn ones (what is missing is drawn), and outputs that are expected on them.
  // Where the original has others, nothing is kept: optimize_graph() gives an error.
  std::map<std::string, Tensor> inputs, expected;
  // For other kinds of inputs than ordinary and given ones: those that it will not do for are left out.
  double seconds = 8;
};

struct CheckReport {
  bool checked = false;
  bool passed = false;
  std::string engine, why_not;          // "none" where the graph is unchanged; why_not: where it could not be checked
  std::vector<std::string> draws;       // kinds of inputs, in order; where it failed, the last did
  int round = 0;                        // of the last draw's inputs, where there are several of a kind
  std::vector<std::string> not_drawn;   // kinds of inputs that there was no time for
  std::vector<Difference> differences;  // on ordinary inputs, or where it failed
  std::vector<std::vector<Difference>> differences_of_draw;  // parallel to draws, and of each by output
  // Operators of the original that run, and those among them whose results were compared, or went into such.
  int nodes = 0, nodes_checked = 0;
  std::vector<std::string> left_out;  // why the others were not: operators that nothing here runs, by name
  std::string extents;                // of symbols, as they were drawn: "batch=2, n=3"; empty where there are none
  // Of code that is further off than the tolerance, but not further than the model moves where its inputs change in
  // their last digits: by how much it does.
  std::string amplified;
  // Of files: that the runtime's own optimizations change what the original gives, so that they cannot be held against
  // the result.
  std::string of_runtime;
};

// The last inputs that were tried, which are those that a check failed on: "large random inputs", "given inputs".
// Precondition: there are draws.
std::string last_inputs(const CheckReport& report);

// What a search compares: graphs by their plans, or, to see what that is worth, by the sum of their operators alone.
enum class CostModel { Plan, Sum };

struct DriverOptions {
  Target target;
  CostModel cost_model = CostModel::Plan;
  SearchOptions search;  // whose `confirm` is not used: the driver proves each rule that a result rests on
  // Kernels are built and timed on this machine, and their times kept in the file `cache`; else the analytic costs. For
  // CUDA where there is no GPU, times that the cache has of one; `gpu` is a part of its name.
  bool measured_costs = false;
  std::string cache, gpu;
  CheckOptions check;
  uint64_t seed = 0;  // of the inputs that the result is timed on; the check has the next one
  bool wants_code = false;
  bool wants_plans = false;  // the result's and the original's, where they can be planned
  bool times_code = true;    // where code is wanted: it is run here, against the original's, and checked
  int runs = 15;             // timed runs of each, in turns
  // An ONNX file is wanted. Where code is wanted too, both are one choice, unless a runtime would be slower with it.
  bool wants_onnx = false;
  // What the ONNX file is of, where that is not the graph that is optimized for code, which holds operators taken apart
  // (ImportOptions::lower): searched for itself then.
  std::optional<Graph> file_graph;
  // Judges the ONNX file, where it is given: what is not faster there than the original is not kept.
  std::shared_ptr<ModelTimer> timer;
  // Whether a graph can be written as the caller will write it; a result that cannot is not kept.
  std::function<Status(const Graph&)> is_writable;
  // Seconds for rules that the model's own operators ask for (mutants.h), which are offered to the search with the
  // others; 0: nothing is looked for. `only_unmarked`: those with a mark are left out.
  double mutation_seconds = 0;
  bool only_unmarked_mutants = false;
};

struct MeasuredLatency {
  double before_ms = 0, after_ms = 0;  // medians of interleaved runs
  double speedup = 0;                  // median over rounds
  std::string plan;                    // the result's, as it was timed (print_plan)
  bool is_cached = false;              // nothing of it was timed in this run
};

// The result's plan by measured kernel times, in turns with another of the same graph.
struct PlanLatency {
  std::string other;                // how that was made: one of the names below
  double own_ms = 0, other_ms = 0;  // medians of interleaved runs
  double ratio = 0;                 // own over other: median over rounds
  bool kept_other = false;
  bool is_cached = false;  // it was timed in an earlier run
};
constexpr const char *kAnalyticPlan = "analytic costs", *kPlanByRules = "fusion by rule",
                     *kPlanInPieces = "attention in pieces", *kPlanOfFloats = "weights as floats",
                     *kPlanWithoutTiles = "no matrix tiles", *kPlanByLibraries = "more of the libraries' kernels",
                     *kPlanWithoutLibraries = "fewer of the libraries' kernels",
                     *kPlanOfDividedDepths = "more tiles of divided depth",
                     *kPlanWithoutPrologues = "nothing of what precedes a product in its tile",
                     *kPlanOfSmallTiles = "tiles that leave room for the next kernel",
                     *kPlanWithoutGroups = "a launch for each kernel",
                     *kPlanWithoutSequences = "no short kernels in sequence";

// Of the ONNX file, by DriverOptions::timer.
struct RuntimeTimes {
  std::string runtime;
  double before_ms = 0, after_ms = 0;  // medians of rounds in turns; `after` of what was compared last
  double speedup = 0, noise = 0;       // median over rounds; faster is above 1 + noise
  int candidates = 0;                  // rewritten models that were timed
  double seconds = 0;                  // for all of it
  std::string kept;                    // which model, in words
};

struct Outcome {
  OptimizeResult result;     // its graph is the one that is to be written, and that `plan` is of
  std::optional<Plan> plan;  // where code or plans are wanted
  std::optional<Plan> original_plan;
  std::string plan_note;                      // where plans are wanted and there is none: why
  std::map<std::string, ProofRecord> proofs;  // made in this run, of the rules that a result rested on
  std::vector<RefusedRule> refused;           // proved by their records alone
  std::vector<std::string> notes;             // warnings: of records, of results that were not kept
  CheckReport check;
  std::optional<CheckReport> code_check;  // the plan's code against another way to compute its graph, where it was run
  bool has_measured_costs = false;
  std::string machine;        // whose times they are
  int kernels_timed = 0;      // that the cache did not know
  double timing_seconds = 0;  // for all of them, building included
  int plans_timed = 0;        // times that whole plans were timed in turns, which the cache did not know
  std::optional<MeasuredLatency> latency;
  std::vector<PlanLatency> plan_latencies;  // with plans that differ from it, one after another
  std::optional<RuntimeTimes> runtime_times;
  // Where the ONNX file is not of `result`, which is the code's: what it is of, searched by a runtime's cost.
  std::shared_ptr<const Outcome> onnx;
  const Graph& onnx_graph() const { return onnx ? onnx->result.graph : result.graph; }
  std::string latency_note;             // where it was not measured, why; what was kept where the original was faster
  std::optional<FoundMutants> mutants;  // where they were looked for; `rules` are those that were offered
  Roofline roofline;                    // of the target, as the analytic costs take it
  std::vector<Phase> phases;
};

// Errors: unknown rules or passes in the options, a cache that cannot be read or written, or has times of several GPUs
// and not of the one that is asked for, and, where code is wanted, those of planning, and code that does not
// compute what its graph means.
Result<Outcome> optimize_graph(const Graph& graph, const std::vector<RewriteRule>& rules, const DriverOptions& options);

// Random inputs in valid ranges: standard normal floats; integers that index a tensor stay within its extents. Errors:
// an input whose extents are not static (say --shape), or of a type that cannot be drawn (strings).
Result<std::map<std::string, Tensor>> draw_inputs(const Graph& graph, uint64_t seed);

}  // namespace gopt
