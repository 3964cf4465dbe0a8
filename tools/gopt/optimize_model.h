// What `gopt optimize` does, but for what it prints: files in, files out, and all that a report is of, as a value. The
// program and the Python module call it.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gopt/codegen.h"
#include "gopt/model_pieces.h"
#include "gopt/runnable_model.h"
#include "report.h"
#include "rule_files.h"
#include "runtime_flags.h"
#include "search_flags.h"

namespace gopt::cli {

struct OptimizeOptions : SearchFlags {
  std::string output, emit, prefix = "gopt", mutate = "0s", mutate_rules;
  std::vector<std::string> reports, specialize, maxima;
  RuntimeFlags runtime;
  int runs = 15;
  bool dry_run = false, force = false, measure = true, freeze_initializers = false;
  // No flags: a caller takes the rewritten model, or its plan, from the value that comes out; as with -o and --emit.
  bool takes_model = false, takes_plan = false;
  bool may_split = true;  // where some nodes have no code, the rest becomes pieces
  Extents usual;          // of open extents, which code for any size is planned for

  bool wants_onnx() const { return takes_model || !output.empty(); }
  bool wants_code() const { return takes_plan || !emit.empty(); }
};

void add_optimize_flags(CLI::App& app, OptimizeOptions& options);

// Who follows the work; what is empty is not called.
struct Observer {
  Warn warn;
  std::function<void(const std::string&)> progress;
  std::function<void(const Improvement&)> improved;
  const std::atomic<bool>* stop = nullptr;  // set: the best so far is what is found
  // Called when the search begins; what it returns is held to its end.
  std::function<std::shared_ptr<void>()> searching;
};

struct OptimizedModel {
  std::vector<RewriteRule> rules;  // that were offered
  DriverOptions options;
  ImportedModel model;
  Outcome outcome;
  std::optional<ModelPieces> pieces;  // of a model that is code in pieces alone: `outcome` has no plan then
  std::string path, output, emitted;  // what was read and written
  std::string prefix;                 // of the code
  double seconds = 0;
  std::vector<Phase> phases;

  OptimizationReport report() const;  // of this value, which has to stay
};

// Writes what the options ask for, all of it or nothing. Errors: contradictory options, by flag; those of reading,
// optimizing and writing.
Result<OptimizedModel> optimize_model(const OptimizeOptions& options, const Observer& observer);

// Of --specialize: the model optimized for each size on its own, and the code of all.
struct OptimizedSizes {
  struct Size {
    std::string name;  // "batch=1 seq=64", as it was asked for
    OptimizedModel model;
  };
  std::vector<Size> sizes;
  std::optional<OptimizedModel> general;  // with its extents open
  std::string why_not_general;            // where there is none
  std::optional<SizedPlans> plans;        // but for a dry run
  std::string emitted;
};
// Precondition: options.specialize is not empty. Errors: also what is no code, and extents that stay open.
Result<OptimizedSizes> optimize_sizes(const OptimizeOptions& options, const Observer& observer);

// The rewritten model to a file, its weights beside it where the original's were. Errors: the file exists and `force`
// is not given, or is what was read, and those of export_onnx.
Status write_model(const OptimizedModel& optimized, const std::string& path, bool force);

}  // namespace gopt::cli
