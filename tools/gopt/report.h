// What one optimization did, as a value and as the table that is printed. See report_json.h for programs and
// report_page.h for a browser.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gopt/model_pieces.h"

namespace gopt::cli {

struct OptimizationReport {
  std::string model, output, emitted;
  const Graph& before;
  const std::map<std::string, int>& in_file;  // operators as the file has them
  const std::vector<RewriteRule>& rules;      // that were offered
  const DriverOptions& options;
  const Outcome& outcome;
  const ModelPieces* pieces = nullptr;  // of a model that is code in pieces alone
  std::string prefix = "gopt";
  double seconds = 0;
  std::vector<Phase> phases;  // what they went to
};

// With its domain, where that is not ONNX's.
std::string operator_name(const Node& node);
// Operators of a graph that run, by name: what depends on initializers alone is folded once.
std::map<std::string, int> running_operators(const Graph& graph);

struct OperatorCount {
  int in_file = 0, before = 0, after = 0;
};
// Operators by name: as they stand in the file, and those that run, before and after.
std::map<std::string, OperatorCount> operator_counts(const OptimizationReport& report);
std::string cost_kind(const OptimizationReport& report);  // "measured", "analytic" or "runtime"

// Where a runtime judged the ONNX file; else null.
const RuntimeTimes* runtime_times(const OptimizationReport& report);
// What the ONNX file is of, where that is not the code's graph; else empty.
std::string onnx_text(const OptimizationReport& report);

// Names of the rules that were found for this model and applied.
std::set<std::string> applied_mutants(const OptimizationReport& report);

// After how many runs of the model the seconds that were spent on it are earned back. Nothing where no run is faster.
struct EarnedBack {
  double runs = 0;
  bool is_measured = false;  // else by the estimate
};
std::optional<EarnedBack> earned_back(const OptimizationReport& report);

void print_report(const OptimizationReport& report);
// For each operator that emitted code calls but has no function for what the caller has to do; none where no code was
// made.
std::vector<std::string> operators_to_register(const OptimizationReport& report);
// Also what the passes changed, and what the seconds went to.
void print_details(const OptimizationReport& report);

}  // namespace gopt::cli
