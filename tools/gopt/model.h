// A model that can be run, whatever it was read from: an ONNX file (by code made for it, or by the interpreter) or an
// emitted folder.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gopt/codegen.h"
#include "gopt/graph.h"

namespace gopt::cli {

struct LoadOptions {
  std::string engine = "auto";  // auto: code for the CPU, the interpreter where there is none; cpu; interpreter
  int threads = 1;
  std::vector<std::string> shapes;  // NAME=1x3x224x224
};

class Model {
 public:
  virtual ~Model() = default;
  virtual std::vector<ModelValue> inputs() const = 0;
  virtual std::vector<ModelValue> outputs() const = 0;
  virtual Result<std::vector<Tensor>> run(const std::map<std::string, Tensor>& inputs) = 0;
  virtual Result<std::vector<double>> time(const std::map<std::string, Tensor>& inputs, int warmup, int runs) = 0;
  // Kernel names and milliseconds over `runs` runs; empty where the engine has no kernels.
  virtual Result<std::vector<std::pair<std::string, double>>> profile(const std::map<std::string, Tensor>& inputs,
                                                                      int runs) = 0;
  virtual Result<std::map<std::string, Tensor>> draw(uint64_t seed) const = 0;
  virtual std::string engine() const = 0;
};

// Errors: those of import and build, with the path.
Result<std::unique_ptr<Model>> load_model(const std::string& path, const LoadOptions& options);
// The same for a graph that is in memory; `name` stands in messages.
Result<std::unique_ptr<Model>> load_graph(const Graph& graph, const std::string& name, const LoadOptions& options);

// Builds and loads a plan's code. Errors: those of emission and of the compiler.
Result<std::unique_ptr<Model>> compile_plan(const Plan& plan, int threads);

// NAME=1x3x224x224 parsed. Errors say what is expected.
Result<std::map<std::string, std::vector<int64_t>>> parse_shapes(const std::vector<std::string>& shapes);

// Inputs from NAME=FILE pairs and .npz files (an empty NAME: the only input, or the name in the file).
Result<std::map<std::string, Tensor>> read_inputs(const std::vector<std::string>& files,
                                                  const std::vector<ModelValue>& inputs);

}  // namespace gopt::cli
