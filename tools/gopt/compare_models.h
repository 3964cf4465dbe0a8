// What `gopt compare` does, but for what it prints.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "gopt/compare.h"
#include "gopt/runnable_model.h"

namespace gopt::cli {

struct CompareOptions {
  std::string reference, other;
  std::vector<std::string> inputs;
  std::string reference_engine = "interpreter", other_engine = "auto";
  int threads = 1;
  uint64_t seed = 0;
  int repeats = 1;
  std::vector<std::string> shapes;
  Tolerance tolerance;
};

void add_compare_flags(CLI::App& app, CompareOptions& options);

struct ModelsCompared {
  std::vector<std::vector<Difference>> differences;  // by output of the reference, of each draw
  std::vector<Extents> sizes;                        // of each draw; empty where no extent is open
  bool passed() const;
};

// Both on the same inputs: those given (and of `options`, by file), and drawn ones for the others. Errors: inputs that
// the reference does not have or that do not fit, an output that the other one lacks.
Result<ModelsCompared> compare_models(RunnableModel& reference, RunnableModel& other, const CompareOptions& options,
                                      const std::map<std::string, Tensor>& given = {});

}  // namespace gopt::cli
