// Times models where they will run: in an ONNX runtime, or by any command that prints milliseconds. Models are timed in
// turns, each in a process of its own, so that neither what disturbs the machine nor one model's memory favours
// another.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gopt/graph.h"

namespace gopt {

class ModelTimer {
 public:
  virtual ~ModelTimer() = default;
  virtual std::string name() const = 0;
  // Milliseconds of one run: for each graph, one number a round; in a round every graph has its turn. Errors: a graph
  // that cannot be written, a process that fails or takes too long, with what it said.
  virtual Result<std::vector<std::vector<double>>> time(const std::vector<Graph>& graphs) = 0;
  // What its calls so far took when they were made first, where they are answered by what was timed then.
  virtual double seconds_saved() const { return 0; }
};

struct TimerOptions {
  std::string python = "python3";  // with numpy and the runtime's module
  int threads = 1;
  uint64_t seed = 0;             // of the inputs
  double timeout_seconds = 300;  // of one turn; loading the model is part of the first
};

// `runtime`: "onnxruntime" or "openvino". Errors: a Python that does not start or lacks a module, with what to install.
Result<std::unique_ptr<ModelTimer>> runtime_timer(const std::string& runtime, const TimerOptions& options);

// A shell command in which {model} stands for the ONNX file and {inputs} for an .npz file of drawn inputs; the last
// line that it prints is a number of milliseconds. Errors: no {model} in it.
Result<std::unique_ptr<ModelTimer>> command_timer(const std::string& command, const TimerOptions& options);

}  // namespace gopt
