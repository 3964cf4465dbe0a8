#include "runtime_flags.h"

#include <cstdlib>

namespace gopt::cli {

void add_runtime_flags(CLI::App& app, RuntimeFlags& flags) {
  const char* python = std::getenv("GOPT_PYTHON");
  flags.python = python && *python ? python : "python3";
  app.add_option(
         "--runtime", flags.runtime,
         "onnxruntime or openvino: the ONNX file is timed there against the original, and kept where it is faster")
      ->check(CLI::IsMember({"onnxruntime", "openvino"}));
  app.add_option("--measure", flags.command,
                 "the same by a shell command that prints milliseconds as its last line; {model} stands for the file, "
                 "{inputs} for inputs in .npz");
  app.add_option("--python", flags.python, "the Python that has the runtime (default: $GOPT_PYTHON, else python3)");
  app.add_option("--measure-timeout", flags.timeout_seconds, "seconds that one turn of --runtime or --measure may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

Status check_runtime_flags(const RuntimeFlags& flags, bool writes_onnx) {
  if (!flags.is_given()) return Unit{};
  if (!flags.runtime.empty() && !flags.command.empty())
    return Error{"--runtime and --measure both say what judges the ONNX file: give one of them"};
  if (!writes_onnx) return Error{"--runtime and --measure judge the ONNX file: give -o FILE.onnx, too"};
  return Unit{};
}

Result<std::shared_ptr<FileRunner>> make_runner(const RuntimeFlags& flags) {
  GOPT_ASSIGN_OR_RETURN(auto runner, onnxruntime_runner(flags.python, flags.timeout_seconds));
  return std::shared_ptr<FileRunner>(std::move(runner));
}

Result<std::shared_ptr<ModelTimer>> make_timer(const RuntimeFlags& flags, int threads, uint64_t seed) {
  const TimerOptions options{flags.python, threads, seed, flags.timeout_seconds};
  GOPT_ASSIGN_OR_RETURN(auto timer, flags.command.empty() ? runtime_timer(flags.runtime, options)
                                                          : command_timer(flags.command, options));
  return std::shared_ptr<ModelTimer>(std::move(timer));
}

}  // namespace gopt::cli
