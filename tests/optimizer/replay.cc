#include "replay.h"

#include <cmath>

#include "gopt/interpreter.h"
#include "random_tensor.h"

namespace gopt {
namespace {

AttributeValue numbers_in(AttributeValue value, const Substitution& numbers) {
  if (auto* index = std::get_if<Index>(&value)) *index = substitute(*index, numbers);
  if (auto* list = std::get_if<std::vector<Index>>(&value))
    for (Index& index : *list) index = substitute(index, numbers);
  if (std::holds_alternative<FloatVariable>(value)) return 0.25;
  return value;
}

std::set<AtomId> symbols_of(const RewriteRule& goal) {
  std::set<AtomId> symbols;
  for (const RuleVariable& variable : goal.variables)
    for (const Index& extent : *variable.type.shape) collect_symbols(extent, symbols);
  for (const NodePtr& node : goal.left.nodes())
    for (const auto& [name, value] : node->attributes) collect_symbols(value, symbols);
  return symbols;
}

// The graph with numbers for symbols. Errors: an extent that is no small positive number, an operator that is not
// defined.
Result<Graph> with_numbers(const Graph& graph, const RewriteRule& goal, const Substitution& numbers) {
  GraphBuilder builder;
  std::map<std::string, Value> inputs;
  for (const RuleVariable& variable : goal.variables) {
    Shape shape;
    for (const Index& symbolic : *variable.type.shape) {
      const Index extent = substitute(symbolic, numbers);
      if (!extent.is_constant() || extent.constant() < 1 || extent.constant() > 12) return Error{"a bad extent"};
      shape.push_back(extent);
    }
    inputs[variable.name] = builder.input(variable.name, {variable.type.element, std::move(shape)});
  }
  std::map<Value, Value> made;
  for (const NodePtr& node : graph.nodes()) {
    if (node->is(OpKind::Input) || node->is(OpKind::Constant)) {
      made[{node, 0}] = node->is(OpKind::Input) ? inputs.at(node->name) : builder.constant(node->tensor);
      continue;
    }
    std::vector<Value> operands;
    for (const Value& input : node->inputs) operands.push_back(input ? made.at(input) : Value{});
    Attributes attributes;
    for (const auto& [name, value] : node->attributes) attributes.emplace(name, numbers_in(value, numbers));
    GOPT_ASSIGN_OR_RETURN(const NodePtr copy,
                          builder.add(node->op, operands, attributes, static_cast<int>(node->outputs.size())));
    for (int k = 0; k < static_cast<int>(node->outputs.size()); k++) made[{node, k}] = {copy, k};
  }
  int count = 0;
  for (const GraphOutput& output : graph.outputs())
    builder.output("out" + std::to_string(count++), made.at(output.value));
  return builder.build();
}

std::map<std::string, Tensor> random_inputs(std::mt19937_64& random, const Graph& graph) {
  std::map<std::string, Tensor> inputs;
  for (const Value& input : graph.inputs()) {
    inputs[input.node->name] = random_tensor(random, input.type().element, input.type().static_shape(), 0.25, 1.75);
  }
  return inputs;
}

std::string difference_of(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t output = 0; output < a.size(); output++) {
    if (a[output].dims() != b[output].dims()) return "another shape";
    const auto x = a[output].to_doubles(), y = b[output].to_doubles();
    for (size_t i = 0; i < x.size(); i++)
      if (!(std::abs(x[i] - y[i]) <= 1e-4 * (1 + std::abs(x[i]))))
        return std::to_string(x[i]) + " and " + std::to_string(y[i]);
  }
  return "";
}

// Whether sizes were found for which the goal means something.
bool replay_once(std::mt19937_64& random, const Derivation& derivation, Replay& replay) {
  const RewriteRule& goal = derivation.goal;
  const std::set<AtomId> symbols = symbols_of(goal);
  for (int attempt = 0; attempt < 3000; attempt++) {
    Substitution numbers;
    for (AtomId id : symbols) numbers[id] = static_cast<int64_t>(random() % (1 + static_cast<uint64_t>(attempt) % 5));
    if (!substitute(goal.condition, numbers).is_true()) continue;
    const auto left = with_numbers(goal.left, goal, numbers), right = with_numbers(goal.right, goal, numbers);
    if (!left.ok() || !right.ok()) continue;
    const auto inputs = random_inputs(random, *left);
    const auto expected = interpret(*left, inputs);
    if (!expected.ok()) continue;
    std::vector<std::pair<std::string, Graph>> graphs;
    for (const DerivationStep& step : derivation.steps) graphs.emplace_back(step.rule, step.graph);
    graphs.emplace_back("the right side", goal.right);
    for (const auto& [name, symbolic] : graphs) {
      const auto graph = with_numbers(symbolic, goal, numbers);
      const auto values = graph.ok() ? interpret(*graph, inputs) : Result<std::vector<Tensor>>(graph.error());
      const std::string what = values.ok() ? difference_of(*expected, *values) : values.error().message;
      if (!what.empty() && replay.difference.empty()) replay.difference = name + ": " + what;
      if (what.empty()) replay.graphs++;
    }
    return true;
  }
  return false;
}

}  // namespace

Replay replay_derivation(std::mt19937_64& random, const Derivation& derivation, int times) {
  Replay replay;
  for (int time = 0; time < times; time++)
    if (!replay_once(random, derivation, replay)) break;
  return replay;
}

}  // namespace gopt
