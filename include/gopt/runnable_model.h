// A model that can be run, whatever it was made from: a graph (by code made for it, or by the interpreter), or a folder
// of emitted code.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gopt/codegen.h"
#include "gopt/graph.h"

namespace gopt {

class RunnableModel {
 public:
  virtual ~RunnableModel() = default;
  virtual std::vector<ModelValue> inputs() const = 0;
  virtual std::vector<ModelValue> outputs() const = 0;
  virtual Result<std::vector<Tensor>> run(const std::map<std::string, Tensor>& inputs) = 0;
  // Milliseconds of each run, after `warmup` runs that do not count.
  virtual Result<std::vector<double>> time(const std::map<std::string, Tensor>& inputs, int warmup, int runs) = 0;
  // Kernel names and milliseconds over `runs` runs; empty where the engine has no kernels.
  virtual Result<std::vector<std::pair<std::string, double>>> profile(const std::map<std::string, Tensor>& inputs,
                                                                      int runs) = 0;
  // Random inputs in valid ranges. Errors: those of draw_inputs.
  virtual Result<std::map<std::string, Tensor>> draw(uint64_t seed) const = 0;
  virtual std::string engine() const = 0;  // "cpu" or "interpreter"
};

enum class Engine { Auto, Cpu, Interpreter };  // Auto: code for the CPU, the interpreter where there is none

// Errors: those of planning, emission and the compiler; `name` stands in messages.
Result<std::unique_ptr<RunnableModel>> load_graph(const Graph& graph, const std::string& name, Engine engine,
                                                  int threads);
// A folder of emitted code. Errors: those of building it, with the path.
Result<std::unique_ptr<RunnableModel>> load_folder(const std::string& folder, int threads);
// Builds and loads a plan's code. Errors: those of emission and of the compiler.
Result<std::unique_ptr<RunnableModel>> compile_plan(const Plan& plan, int threads);

}  // namespace gopt
