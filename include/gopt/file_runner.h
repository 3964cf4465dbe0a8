// Runs ONNX files in another program than this one, so that a result is compared with what the file says as somebody
// else reads it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gopt/result.h"
#include "gopt/type.h"

namespace gopt {

// What the program that runs a file does to it first: nothing, or what it does by default.
enum class RuntimeOptimizations { None, Usual };

class FileRunner {
 public:
  virtual ~FileRunner() = default;
  virtual std::string name() const = 0;
  // The file's outputs, in its order, on each of `draws` (tensors by input name; names that it does not have are left
  // out). Errors: a file that it refuses, a process that fails or takes too long, with what it said.
  virtual Result<std::vector<std::vector<Tensor>>> run(const std::string& path,
                                                       const std::vector<std::map<std::string, Tensor>>& draws,
                                                       RuntimeOptimizations optimizations) = 0;
};

// ONNX Runtime in a process of `python`. Errors: a Python that does not start or lacks a
// module, with what to install.
Result<std::unique_ptr<FileRunner>> onnxruntime_runner(const std::string& python, double timeout_seconds);

}  // namespace gopt
