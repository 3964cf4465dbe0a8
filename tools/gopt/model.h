// Models as the command line names them.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gopt/runnable_model.h"
#include "write_file.h"

namespace gopt::cli {

constexpr const char* kShapeHelp =
    "NAME=1x3x224x224, an input's extents, or SYMBOL=4: fixes symbolic extents, or changes the batch of a static model";

struct LoadOptions {
  std::string engine = "auto";  // auto: code for the CPU, the interpreter where there is none; cpu; interpreter
  int threads = 1;
  std::vector<std::string> shapes;  // NAME=1x3x224x224, SYMBOL=4
  std::string written;              // what the same command writes: none of the files that are read, or empty
};

void add_load_flags(CLI::App& app, LoadOptions& options);

// Of a model that was imported: itself first, then its weights.
std::vector<ReadFile> read_files(const std::vector<std::string>& files);

// An ONNX file, or a folder that --emit wrote. Errors: those of import and build, with the path; `written` is read.
Result<std::unique_ptr<RunnableModel>> load_model(const std::string& path, const LoadOptions& options);

// NAME=1x3x224x224 or SYMBOL=4 parsed. Errors say what is expected.
Result<std::map<std::string, std::vector<int64_t>>> parse_shapes(const std::vector<std::string>& shapes);

// The file of "NAME=FILE" or "FILE".
std::string input_path(const std::string& given);

// Inputs from .npz files, and NAME=FILE pairs of .npy or .pb (an empty NAME: the only input, or the name in the file).
Result<std::map<std::string, Tensor>> read_inputs(const std::vector<std::string>& files,
                                                  const std::vector<ModelValue>& inputs);

// Errors: a tensor of a name that no input has, with the names that there are.
Status check_known(const std::map<std::string, Tensor>& tensors, const std::vector<ModelValue>& inputs);

}  // namespace gopt::cli
