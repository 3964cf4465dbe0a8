// What one optimization did, as the table that is printed and as the JSON of --report.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "check.h"
#include "gopt/optimizer.h"

namespace gopt::cli {

struct MeasuredLatency {
  double before_ms = 0, after_ms = 0;  // medians of interleaved runs
  double speedup = 0;                  // median over rounds
};

struct OptimizationReport {
  std::string model, output, emitted;
  Graph before;
  OptimizeResult result;
  std::vector<RewriteRule> rules;             // that were offered
  std::map<std::string, ProofRecord> proofs;  // made in this run, of the rules that a result rested on
  std::vector<RefusedRule> refused;           // proved by their records alone
  std::vector<std::string> notes;             // what is to be said of records
  std::string cost;                           // "analytic" or "measured"
  SearchOptions search;
  CheckReport check;
  std::optional<MeasuredLatency> latency;
  std::string latency_note;  // where it was not measured, why; what was emitted when the original was faster
  double seconds = 0;
};

void print_report(const OptimizationReport& report);
std::string report_json(const OptimizationReport& report);

}  // namespace gopt::cli
