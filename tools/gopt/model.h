// Models as the command line names them.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gopt/runnable_model.h"

namespace gopt::cli {

struct LoadOptions {
  std::string engine = "auto";  // auto: code for the CPU, the interpreter where there is none; cpu; interpreter
  int threads = 1;
  std::vector<std::string> shapes;  // NAME=1x3x224x224
};

void add_load_flags(CLI::App& app, LoadOptions& options);

// An ONNX file, or a folder that --emit wrote. Errors: those of import and build, with the path.
Result<std::unique_ptr<RunnableModel>> load_model(const std::string& path, const LoadOptions& options);

// NAME=1x3x224x224 parsed. Errors say what is expected.
Result<std::map<std::string, std::vector<int64_t>>> parse_shapes(const std::vector<std::string>& shapes);

// Inputs from NAME=FILE pairs and .npz files (an empty NAME: the only input, or the name in the file).
Result<std::map<std::string, Tensor>> read_inputs(const std::vector<std::string>& files,
                                                  const std::vector<ModelValue>& inputs);

// Errors: a tensor of a name that no input has, with the names that there are.
Status check_known(const std::map<std::string, Tensor>& tensors, const std::vector<ModelValue>& inputs);

}  // namespace gopt::cli
