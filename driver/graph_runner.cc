#include "graph_runner.h"

#include "gopt/interpreter.h"
#include "gopt/node_operations.h"

namespace gopt::driver {

double operations_of(const Graph& graph, const Target& target) {
  return plan_cost_oracle(target, CostSource().make())->estimate(graph).operations;
}

namespace {

bool is_product_of(const Node& node, ElementType type) {
  const bool is_product =
      node.is_recurrence() || node.is(OpKind::MatMul) || node.is(OpKind::Gemm) || node.is(OpKind::Conv);
  return is_product && node.outputs[0].element == type;
}

}  // namespace

bool is_interpreted_soon(const Graph& graph) {
  constexpr double kOneByOne = 1e9, kProducts = 3e11, kExactProducts = 1e10;
  double one_by_one = 0, products = 0, exact_products = 0;
  for (const NodePtr& node : graph.nodes())
    (is_product_of(*node, ElementType::Float32)   ? products
     : is_product_of(*node, ElementType::Float64) ? exact_products
                                                  : one_by_one) += scalar_operations(*node);
  return one_by_one < kOneByOne && products < kProducts && exact_products < kExactProducts;
}

Result<std::vector<std::vector<Tensor>>> GraphRunner::run_all(
    std::span<const std::map<std::string, Tensor>> inputs) const {
  if (!code) return interpret_all(graph, inputs, products);
  std::vector<std::vector<Tensor>> outputs;
  for (const auto& own : inputs) {
    GOPT_ASSIGN_OR_RETURN(std::vector<Tensor> made, code->run(own));
    outputs.push_back(std::move(made));
  }
  return outputs;
}

Result<std::vector<Tensor>> GraphRunner::run(const std::map<std::string, Tensor>& inputs) const {
  return code ? code->run(inputs) : interpret(graph, inputs, products);
}

Result<GraphRunner> runner_for(PlannedGraph& planned, const std::string& engine, Products products) {
  GraphRunner runner{planned.graph(), nullptr, products};
  if (engine != kInterpreter) {
    GOPT_ASSIGN_OR_RETURN(runner.code, engine == kCuda ? planned.code_for_target() : planned.code());
  }
  return runner;
}

}  // namespace gopt::driver
