// What a check takes a graph's results from: the interpreter, or code.
#pragma once

#include "gopt/driver.h"
#include "gopt/interpreter.h"
#include "planned_graph.h"

namespace gopt::driver {

constexpr const char *kInterpreter = "interpreter", *kCpu = "cpu", *kCuda = "cuda";

// About the interpreter's second or two for all kinds of inputs; beyond that it computes products in floats.
constexpr double kInterpretOften = 1e8;
// Scalar operations, by which that is decided.
double operations_of(const Graph& graph, const Target& target);
inline Products products_for(double operations) {
  return operations < kInterpretOften ? Products::Exact : Products::Floats;
}
// Whether the interpreter takes some seconds at most for a run with products in floats. Beyond, compiling is quicker.
bool is_interpreted_soon(const Graph& graph);

// Runs a graph, which must outlive it.
struct GraphRunner {
  const Graph& graph;
  RunnableModel* code = nullptr;  // none: the interpreter
  Products products = Products::Exact;

  Result<std::vector<Tensor>> run(const std::map<std::string, Tensor>& inputs) const;
  Result<std::vector<std::vector<Tensor>>> run_all(std::span<const std::map<std::string, Tensor>> inputs) const;
};
// By one of the engines above; code is made here, once for all runs. `products`: of the interpreter. Errors: those of
// making the code.
Result<GraphRunner> runner_for(PlannedGraph& planned, const std::string& engine, Products products = Products::Exact);

}  // namespace gopt::driver
