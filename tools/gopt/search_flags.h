// Flags of the commands that optimize a model: how far to search, by which costs, and how the result is checked.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <string>
#include <vector>

#include "gopt/driver.h"
#include "gopt/onnx.h"
#include "write_file.h"

namespace gopt::cli {

struct SearchFlags {
  std::string model, target, search = "backtracking", cost = "auto", cost_model = "plan", check = "auto",
                             budget = "60s", cache, gpu;
  std::vector<std::string> rules, shapes, enable, disable, allow;
  int threads = 1, steps = 10000, workers = 0, beam_width = 8;
  std::string precision = "fp32";
  double alpha = 1.05;
  uint64_t seed = 0;
  Tolerance tolerance;
  bool safe = false;
  bool may_check_files = false;  // --check onnxruntime is taken
};

// `targets`: those that --target takes; which is meant where it is not given.
void add_search_flags(CLI::App& app, SearchFlags& flags, const std::vector<std::string>& targets,
                      const std::string& default_target = "cpu");

// Seconds. Errors say the flag: 60s, 500ms and 2m are taken.
Result<double> parse_time(const std::string& flag, const std::string& text);

// Nothing of what is written or timed. Errors say which flag, and what it takes.
Result<DriverOptions> driver_options(const SearchFlags& flags, TargetKind default_target = TargetKind::Cpu);

// What flags say that takes the rules or the model: --safe switches off those of these rules that carry a mark; --check
// FILE.npz is read. Errors: those of read_check_file.
Status complete_options(const SearchFlags& flags, const std::vector<RewriteRule>& rules, const Graph& graph,
                        DriverOptions& options);

// What is read by these flags, but for the rules that gopt ships.
std::vector<ReadFile> files_read(const SearchFlags& flags, const ImportedModel& model);
// Errors: --cache, which is written, is one of them.
Status check_cache(const SearchFlags& flags, const ImportedModel& model);

// The model and the rules that the flags name; warnings go to standard error.
struct ModelAndRules {
  ImportedModel model;
  std::vector<RewriteRule> rules;
};
Result<ModelAndRules> load_model_and_rules(const SearchFlags& flags);

// Set by Ctrl-C, or SIGTERM, while one of these is there: the best so far is what is found. A second one ends the
// program.
const std::atomic<bool>& interrupted();
class InterruptStops {
 public:
  InterruptStops();
  ~InterruptStops();
  InterruptStops(const InterruptStops&) = delete;
  InterruptStops& operator=(const InterruptStops&) = delete;
};

// What shows progress on a terminal: one line, written over. Empty elsewhere.
std::function<void(const std::string&)> progress_line();
void clear_progress_line();

}  // namespace gopt::cli
