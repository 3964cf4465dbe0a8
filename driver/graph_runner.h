// What a check takes a graph's results from: the interpreter, or code.
#pragma once

#include "gopt/driver.h"
#include "planned_graph.h"

namespace gopt::driver {

constexpr const char *kInterpreter = "interpreter", *kCpu = "cpu", *kCuda = "cuda";

// About the interpreter's second or two for all kinds of inputs; beyond that, compiling both graphs is quicker.
constexpr double kInterpretOften = 1e8;
// Scalar operations, by which that is decided.
double operations_of(const Graph& graph, const Target& target);

// Runs a graph, which must outlive it.
struct GraphRunner {
  const Graph& graph;
  RunnableModel* code = nullptr;  // none: the interpreter

  Result<std::vector<Tensor>> run(const std::map<std::string, Tensor>& inputs) const;
};
// By one of the engines above; code is made here, once for all runs. Errors: those of making it.
Result<GraphRunner> runner_for(PlannedGraph& planned, const std::string& engine);

}  // namespace gopt::driver
