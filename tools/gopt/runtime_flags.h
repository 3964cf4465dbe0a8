// Flags of `gopt optimize` that say by which runtime its ONNX file is judged.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "gopt/file_runner.h"
#include "gopt/model_timer.h"

namespace gopt::cli {

struct RuntimeFlags {
  std::string runtime, command, python;
  double timeout_seconds = 300;
  bool is_given() const { return !runtime.empty() || !command.empty(); }
};

void add_runtime_flags(CLI::App& app, RuntimeFlags& flags);
// Errors: flags that contradict each other, or nothing to judge.
Status check_runtime_flags(const RuntimeFlags& flags, bool writes_onnx);
// Errors: the runtime is not there, with what to install.
// What --check onnxruntime runs files by. Errors: a Python without it.
Result<std::shared_ptr<FileRunner>> make_runner(const RuntimeFlags& flags);
Result<std::shared_ptr<ModelTimer>> make_timer(const RuntimeFlags& flags, int threads, uint64_t seed);

}  // namespace gopt::cli
