#include "gopt/runnable_model.h"

#include <chrono>

#include "build_plan.h"
#include "draw_inputs.h"
#include "gopt/interpreter.h"
#include "gopt/kernel_costs.h"

namespace gopt {

using namespace driver;

namespace {

std::vector<ModelValue> graph_inputs(const Graph& graph) {
  std::vector<ModelValue> values;
  for (const Value& v : graph.inputs()) values.push_back({v.node->name, v.type()});
  return values;
}
std::vector<ModelValue> graph_outputs(const Graph& graph) {
  std::vector<ModelValue> values;
  for (const GraphOutput& o : graph.outputs()) values.push_back({o.name, o.value.type()});
  return values;
}

class InterpretedModel : public RunnableModel {
 public:
  explicit InterpretedModel(Graph graph) : graph_(std::move(graph)) {}
  std::vector<ModelValue> inputs() const override { return graph_inputs(graph_); }
  std::vector<ModelValue> outputs() const override { return graph_outputs(graph_); }
  Result<std::vector<Tensor>> run(const std::map<std::string, Tensor>& inputs) override {
    return interpret(graph_, inputs);
  }
  Result<std::vector<double>> time(const std::map<std::string, Tensor>& inputs, int, int runs) override {
    std::vector<double> times;
    for (int k = 0; k < runs; k++) {
      const auto start = std::chrono::steady_clock::now();
      GOPT_ASSIGN_OR_RETURN(auto outputs, interpret(graph_, inputs));
      times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    return times;
  }
  Result<std::vector<std::pair<std::string, double>>> profile(const std::map<std::string, Tensor>&, int) override {
    return std::vector<std::pair<std::string, double>>{};
  }
  Result<std::map<std::string, Tensor>> draw(uint64_t seed) const override { return draw_inputs(graph_, seed); }
  std::string engine() const override { return "interpreter"; }

 private:
  Graph graph_;
};

class CompiledModel : public RunnableModel {
 public:
  CompiledModel(LoadedModel model, std::optional<Graph> graph) : model_(std::move(model)), graph_(std::move(graph)) {}
  std::vector<ModelValue> inputs() const override { return model_.inputs(); }
  std::vector<ModelValue> outputs() const override { return model_.outputs(); }
  Result<std::vector<Tensor>> run(const std::map<std::string, Tensor>& inputs) override {
    GOPT_ASSIGN_OR_RETURN(std::vector<Tensor> ordered, in_order(inputs));
    return model_.run(ordered);
  }
  Result<std::vector<double>> time(const std::map<std::string, Tensor>& inputs, int warmup, int runs) override {
    GOPT_ASSIGN_OR_RETURN(std::vector<Tensor> ordered, in_order(inputs));
    return model_.time(ordered, warmup, runs);
  }
  Result<std::vector<std::pair<std::string, double>>> profile(const std::map<std::string, Tensor>& inputs,
                                                              int runs) override {
    GOPT_ASSIGN_OR_RETURN(std::vector<Tensor> ordered, in_order(inputs));
    return model_.profile(ordered, runs);
  }
  // Without the graph nothing is known of what an integer may be: 0 and 1 are drawn.
  Result<std::map<std::string, Tensor>> draw(uint64_t seed) const override {
    if (graph_) return draw_inputs(*graph_, seed);
    std::map<std::string, Tensor> drawn;
    for (const ModelValue& v : model_.inputs()) {
      GOPT_ASSIGN_OR_RETURN(Tensor t, draw_tensor(v.name, v.type, 2, seed));
      drawn.emplace(v.name, std::move(t));
    }
    return drawn;
  }
  std::string engine() const override { return "cpu"; }

 private:
  Result<std::vector<Tensor>> in_order(const std::map<std::string, Tensor>& inputs) const {
    std::vector<Tensor> ordered;
    for (const ModelValue& v : model_.inputs()) {
      auto it = inputs.find(v.name);
      if (it == inputs.end()) return Error{"input " + v.name + " is missing"};
      if (it->second.tensor_type() != v.type)
        return Error{"input " + v.name + " is " + to_string(it->second.tensor_type()) + ", expected " +
                     to_string(v.type)};
      ordered.push_back(it->second);
    }
    return ordered;
  }

  LoadedModel model_;
  std::optional<Graph> graph_;
};

}  // namespace

Result<std::unique_ptr<RunnableModel>> compile_plan(const Plan& plan, int threads) {
  GOPT_ASSIGN_OR_RETURN(LoadedModel model, build_plan(plan, threads));
  return std::unique_ptr<RunnableModel>(std::make_unique<CompiledModel>(std::move(model), plan.graph));
}

namespace {

Result<std::unique_ptr<RunnableModel>> compile(const Graph& graph, int threads) {
  auto costs = analytic_kernel_costs({});
  GOPT_ASSIGN_OR_RETURN(Plan plan, make_plan(graph, {TargetKind::Cpu, threads}, *costs));
  return compile_plan(plan, threads);
}

}  // namespace

Result<std::unique_ptr<RunnableModel>> load_graph(const Graph& graph, const std::string& name, Engine engine,
                                                  int threads) {
  if (engine == Engine::Interpreter) return std::unique_ptr<RunnableModel>(std::make_unique<InterpretedModel>(graph));
  auto compiled = compile(graph, threads);
  if (compiled.ok() || engine == Engine::Cpu) return std::move(compiled).with_context(name);
  return std::unique_ptr<RunnableModel>(std::make_unique<InterpretedModel>(graph));
}

Result<std::unique_ptr<RunnableModel>> load_folder(const std::string& folder, int threads) {
  GOPT_ASSIGN_OR_RETURN(LoadedModel model, LoadedModel::build_and_load(folder, threads));
  return std::unique_ptr<RunnableModel>(std::make_unique<CompiledModel>(std::move(model), std::nullopt));
}

}  // namespace gopt
