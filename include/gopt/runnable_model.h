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

// By name.
using Extents = std::map<std::string, int64_t>;
std::string to_string(const Extents& extents);  // "batch=1 seq=64"

class RunnableModel {
 public:
  virtual ~RunnableModel() = default;
  // Open extents are symbols.
  virtual std::vector<ModelValue> inputs() const = 0;
  virtual std::vector<ModelValue> outputs() const = 0;
  virtual Result<std::vector<Tensor>> run(const std::map<std::string, Tensor>& inputs) = 0;
  // Milliseconds of each run, after `warmup` runs that do not count.
  virtual Result<std::vector<double>> time(const std::map<std::string, Tensor>& inputs, int warmup, int runs) = 0;
  // Milliseconds of one of `runs` runs that follow each other without a pause (LoadedModel::time_queued).
  virtual Result<double> time_queued(const std::map<std::string, Tensor>& inputs, int runs);
  // Kernel names and milliseconds over `runs` runs; empty where the engine has no kernels.
  virtual Result<std::vector<std::pair<std::string, double>>> profile(const std::map<std::string, Tensor>& inputs,
                                                                      int runs) = 0;
  // Random inputs in valid ranges, of the first of several sizes unless one is chosen. Errors: those of draw_inputs.
  virtual Result<std::map<std::string, Tensor>> draw(uint64_t seed) const = 0;
  // Where there is code for several sizes: those, and what draw() draws from now on. Extents that are left out are
  // those of the first size that has the others, or of the first. Errors: there is no code for it, with what there is.
  virtual std::vector<Extents> sizes() const { return {}; }
  virtual Status choose_size(const Extents& extents);
  // Inputs of any size that there is code for, or, where open extents need no code, of any.
  virtual Result<std::map<std::string, Tensor>> draw_at(uint64_t seed, const Extents&) const { return draw(seed); }
  // What code calls for operators without definition; an empty function: numbers of no meaning stand in again.
  virtual Status answer_operators(OperatorFunction) { return Unit{}; }
  virtual std::string engine() const = 0;  // "cpu" or "interpreter"
};

enum class Engine { Auto, Cpu, Interpreter };  // Auto: code for the CPU, the interpreter where there is none

// Errors: those of planning, emission and the compiler; `name` stands in messages.
Result<std::unique_ptr<RunnableModel>> load_graph(const Graph& graph, const std::string& name, Engine engine,
                                                  int threads);
// A folder of emitted code. Errors: those of building it, with the path.
Result<std::unique_ptr<RunnableModel>> load_folder(const std::string& folder, int threads);
// Builds and loads a plan's code, or that for several sizes; numbers of no meaning stand in for what operators without
// definition give (LoadedModel::stand_in_for_operators), until they are answered. Errors: those of emission and of the
// compiler.
Result<std::unique_ptr<RunnableModel>> compile_plan(const Plan& plan, int threads);
Result<std::unique_ptr<RunnableModel>> compile_sizes(const SizedPlans& plans, int threads);

}  // namespace gopt
