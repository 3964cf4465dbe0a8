#include "gopt/runnable_model.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "build_plan.h"
#include "draw_inputs.h"
#include "gopt/interpreter.h"
#include "gopt/kernel_costs.h"
#include "gopt/sized_plans.h"

namespace gopt {

using namespace driver;

namespace {

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
  Result<std::map<std::string, Tensor>> draw_at(uint64_t seed, const Extents& extents) const override {
    Substitution numbers;
    for (const auto& [name, extent] : extents) numbers[symbol_atom(name)] = extent;
    return draw_inputs_at(graph_, seed, numbers);
  }
  std::string engine() const override { return "interpreter"; }

 private:
  Graph graph_;
};

class CompiledModel : public RunnableModel {
 public:
  // `open`: its graph, where it is known; `graphs`: of its sizes, in order, where it has several.
  CompiledModel(LoadedModel model, std::optional<Graph> open, std::vector<Graph> graphs = {})
      : model_(std::move(model)), open_(std::move(open)), graphs_(std::move(graphs)) {
    if (!model_.sizes().empty()) chosen_ = model_.sizes()[0];
  }
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
  Result<double> time_queued(const std::map<std::string, Tensor>& inputs, int runs) override {
    GOPT_ASSIGN_OR_RETURN(std::vector<Tensor> ordered, in_order(inputs));
    return model_.time_queued(ordered, runs);
  }
  Result<std::vector<std::pair<std::string, double>>> profile(const std::map<std::string, Tensor>& inputs,
                                                              int runs) override {
    GOPT_ASSIGN_OR_RETURN(std::vector<Tensor> ordered, in_order(inputs));
    return model_.profile(ordered, runs);
  }
  Result<std::map<std::string, Tensor>> draw(uint64_t seed) const override { return draw_of(seed, chosen_); }
  std::vector<Extents> sizes() const override {
    std::vector<Extents> sizes;
    for (const std::vector<int64_t>& numbers : model_.sizes()) sizes.push_back(named(numbers));
    return sizes;
  }
  Status choose_size(const Extents& extents) override {
    GOPT_ASSIGN_OR_RETURN(chosen_, completed(extents));
    return Unit{};
  }
  Result<std::map<std::string, Tensor>> draw_at(uint64_t seed, const Extents& extents) const override {
    GOPT_ASSIGN_OR_RETURN(const auto numbers, completed(extents));
    return draw_of(seed, numbers);
  }
  Status answer_operators(OperatorFunction function) override {
    return function ? model_.register_function(std::move(function)) : model_.stand_in_for_operators();
  }
  std::string engine() const override { return "cpu"; }

 private:
  Extents named(const std::vector<int64_t>& numbers) const {
    Extents extents;
    for (size_t k = 0; k < numbers.size(); k++) extents[model_.extents()[k]] = numbers[k];
    return extents;
  }

  // All extents of the model, where some are given; there is code for them.
  Result<std::vector<int64_t>> completed(const Extents& extents) const {
    const std::vector<std::string>& names = model_.extents();
    for (const auto& [name, extent] : extents)
      if (std::ranges::find(names, name) == names.end())
        return Error{"the code has no open extent '" + name + "'" +
                     (names.empty() ? "" : "; its sizes are " + to_string(named(model_.sizes()[0])) + " and the like")};
    const auto with_given = [&](std::vector<int64_t> numbers) {
      for (size_t k = 0; k < names.size(); k++)
        if (const auto given = extents.find(names[k]); given != extents.end()) numbers[k] = given->second;
      return numbers;
    };
    for (const std::vector<int64_t>& size : model_.sizes())
      if (with_given(size) == size) return size;
    std::string why;
    for (const std::vector<int64_t>& size : model_.sizes()) {
      const std::vector<int64_t> numbers = with_given(size);
      const auto found = LoadedModel(model_).inputs_at(numbers);
      if (found.ok()) return numbers;
      if (why.empty()) why = found.error().message;
    }
    return Error{why};
  }

  // Without the graph nothing is known of what an integer may be: 0 and 1 are drawn.
  Result<std::map<std::string, Tensor>> draw_of(uint64_t seed, const std::vector<int64_t>& numbers) const {
    const auto size = std::ranges::find(model_.sizes(), numbers);
    if (size != model_.sizes().end() && !graphs_.empty())
      return draw_inputs(graphs_[static_cast<size_t>(size - model_.sizes().begin())], seed);
    Substitution extents;
    for (const auto& [name, extent] : named(numbers)) extents[symbol_atom(name)] = extent;
    if (open_) return draw_inputs_at(*open_, seed, extents);
    std::map<std::string, Tensor> drawn;
    GOPT_ASSIGN_OR_RETURN(const std::vector<ModelValue> inputs, LoadedModel(model_).inputs_at(numbers));
    for (const ModelValue& v : inputs) {
      GOPT_ASSIGN_OR_RETURN(Tensor t, draw_tensor(v.name, v.type, 2, seed));
      drawn.emplace(v.name, std::move(t));
    }
    return drawn;
  }

  Result<std::vector<Tensor>> in_order(const std::map<std::string, Tensor>& inputs) const {
    std::vector<Tensor> ordered;
    for (const ModelValue& v : model_.inputs()) {
      auto it = inputs.find(v.name);
      if (it == inputs.end()) return Error{"input " + v.name + " is missing"};
      const bool is_other =
          v.type.has_static_shape() ? it->second.tensor_type() != v.type : it->second.type() != v.type.element;
      if (is_other)
        return Error{"input " + v.name + " is " + to_string(it->second.tensor_type()) + ", expected " +
                     to_string(v.type)};
      ordered.push_back(it->second);
    }
    return ordered;
  }

  LoadedModel model_;
  std::optional<Graph> open_;
  std::vector<Graph> graphs_;
  std::vector<int64_t> chosen_;  // extents that are drawn
};

}  // namespace

std::string to_string(const Extents& extents) {
  std::string text;
  for (const auto& [name, extent] : extents) text += (text.empty() ? "" : " ") + name + "=" + std::to_string(extent);
  return text;
}

Result<double> RunnableModel::time_queued(const std::map<std::string, Tensor>& inputs, int runs) {
  GOPT_ASSIGN_OR_RETURN(const std::vector<double> times, time(inputs, 1, runs));
  return std::accumulate(times.begin(), times.end(), 0.0) / runs;
}

Status RunnableModel::choose_size(const Extents&) {
  return Error{"it has no sizes to choose from; give extents with --shape where the model is read"};
}

Result<std::unique_ptr<RunnableModel>> compile_plan(const Plan& plan, int threads) {
  GOPT_ASSIGN_OR_RETURN(LoadedModel model, build_plan(plan, threads));
  GOPT_RETURN_IF_ERROR(model.stand_in_for_operators());
  return std::unique_ptr<RunnableModel>(std::make_unique<CompiledModel>(std::move(model), plan.graph));
}

Result<std::unique_ptr<RunnableModel>> compile_sizes(const SizedPlans& plans, int threads) {
  GOPT_ASSIGN_OR_RETURN(const EmittedCode code, emit(plans));
  GOPT_ASSIGN_OR_RETURN(LoadedModel model, build_code(code, threads));
  GOPT_RETURN_IF_ERROR(model.stand_in_for_operators());
  std::vector<Graph> graphs;
  for (const SizedPlans::Size& size : plans.sizes) graphs.push_back(size.plan.graph);
  return std::unique_ptr<RunnableModel>(
      std::make_unique<CompiledModel>(std::move(model), plans.open, std::move(graphs)));
}

namespace {

Result<std::unique_ptr<RunnableModel>> compile(const Graph& graph, int threads) {
  auto costs = analytic_kernel_costs({});
  Target target{TargetKind::Cpu, threads};
  if (has_symbolic_inputs(graph)) {
    GOPT_ASSIGN_OR_RETURN(target.open, open_extents(graph, {}, {}));
  }
  GOPT_ASSIGN_OR_RETURN(Plan plan, make_plan(graph, target, *costs));
  return compile_plan(plan, threads);
}

}  // namespace

Result<std::unique_ptr<RunnableModel>> load_graph(const Graph& graph, const std::string& name, Engine engine,
                                                  int threads) {
  if (engine == Engine::Interpreter) return std::unique_ptr<RunnableModel>(std::make_unique<InterpretedModel>(graph));
  // Where nothing is asked for, open extents are the interpreter's: it needs no compiler for each model that is looked
  // at.
  if (engine == Engine::Auto && has_symbolic_inputs(graph))
    return std::unique_ptr<RunnableModel>(std::make_unique<InterpretedModel>(graph));
  auto compiled = compile(graph, threads);
  if (compiled.ok() || engine == Engine::Cpu) return std::move(compiled).with_context(name);
  return std::unique_ptr<RunnableModel>(std::make_unique<InterpretedModel>(graph));
}

Result<std::unique_ptr<RunnableModel>> load_folder(const std::string& folder, int threads) {
  GOPT_ASSIGN_OR_RETURN(LoadedModel model, LoadedModel::build_and_load(folder, threads));
  return std::unique_ptr<RunnableModel>(std::make_unique<CompiledModel>(std::move(model), std::nullopt));
}

}  // namespace gopt
